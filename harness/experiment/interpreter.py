"""A process that trials run in: what it is asked, how it is ended, and where it stands."""

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Protocol

from engines import tied_process
from engines.registry import ENGINES
from harness.experiment.where_it_stands import where_it_stands
from harness.machine.clean_environment import clean_environment
from harness.machine.shared_memory import freed
from harness.trial.spec import Trial
from harness.trial.stack_dump import FOLDER_VARIABLE


class TrialInterpreter(Protocol):
    """A process that is talked to over its three standard streams."""

    @property
    def pid(self) -> int:
        """Its number. Raises ProcessLookupError where none was started."""
        ...

    @property
    def streams(self) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
        """Where it reads, answers and says what goes wrong; unbuffered."""
        ...

    def has_ended(self) -> bool:
        """Whether it has; its number is nobody else's until `end`."""
        ...

    def end(self) -> int:
        """Kill what lives of it; its exit status, negative for a signal's number."""
        ...

    def where(self) -> str:
        """The functions that it is in, or ""."""
        ...


class OwnInterpreter:
    """One that this process has started, with all that it starts: a process group.

    Raises ValueError where the trial's engine cannot be launched, OSError where nothing starts.
    """

    def __init__(self, trial: Trial, folder: Path, pass_fds: Sequence[int] = ()) -> None:
        cell = trial.cell
        program, environment = ENGINES.load(cell.engine).launch(cell.python, cell.release)
        self._folder = folder
        try:
            self._process = tied_process.start_tied(
                [program, "-P", "-m", "harness", "trial"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                env=_environment(trial, folder) | environment,
                start_new_session=True,
                pass_fds=pass_fds,
            )
        except OSError as error:
            raise OSError(f"{program} could not be started: {error.strerror}") from error

    @property
    def pid(self) -> int:
        """Of the process, and of its group."""
        return self._process.pid

    @property
    def streams(self) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
        """See `TrialInterpreter`."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        return process.stdin, process.stdout, process.stderr

    def has_ended(self) -> bool:
        """Whether it has; its status is left to be asked for until its group is gone."""
        how = os.WEXITED | os.WNOWAIT | os.WNOHANG
        return self._process.returncode is not None or (
            os.waitid(os.P_PID, self.pid, how) is not None
        )

    def end(self) -> int:
        """Kill what lives of the group; only then may the system give its number to another."""
        if self._process.returncode is None:
            with freed(self.pid), suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        return self._process.wait()

    def where(self) -> str:
        """The functions that the main threads of the group are in, or ""."""
        return where_it_stands(self.pid, self._folder)


def _environment(trial: Trial, temporary: Path) -> dict[str, str]:
    """A clean one, with a known hash seed and a folder of its own."""
    hash_seed = trial.seed % 2**32 if trial.mode == "timing" else 0
    folder = {"TMPDIR": str(temporary), FOLDER_VARIABLE: str(temporary)}
    return clean_environment() | {"PYTHONHASHSEED": str(hash_seed)} | folder

"""Runs quick tests in a fork of this process, which has imported what takes long to."""

import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from traceback import print_exc
from typing import IO

PATIENCE_SECONDS = 600.0
"""Only tests that hang take so long."""
_LOOK_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class TestsProcess:
    """A fork that runs tests, and the file that they write to."""

    __test__ = False

    pid: int
    output: IO[bytes]

    @classmethod
    def start(cls, folder: Path, tests: Sequence[str]) -> "TestsProcess":
        """Run the quick ones of ``tests`` in a tree's ``folder``, up to the first that fails."""
        output = tempfile.TemporaryFile()  # noqa: SIM115  # `end` closes it
        if pid := os.fork():
            return cls(pid, output)
        status = 70
        try:
            os.setsid()
            os.chdir(folder)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            for descriptor in (1, 2):
                os.dup2(output.fileno(), descriptor)
            sys.stdout = sys.stderr = os.fdopen(1, "w")
            # The folder goes before installed packages, the plug-in that pytest loads included.
            sys.path[0] = os.environ["PYTHONPATH"] = str(folder)
            status = int(_pytest(tests))
        except BaseException:  # whatever it is, this process is not the caller's
            print_exc()
        finally:
            sys.stdout.flush()
            os._exit(status)

    def end(self) -> tuple[int | None, str]:
        """The exit status, None of one that hung, and what was said; nothing of it is left."""
        until = time.monotonic() + PATIENCE_SECONDS
        status = None
        try:
            while status is None and time.monotonic() < until:
                pid, waited = os.waitpid(self.pid, os.WNOHANG)
                status = os.waitstatus_to_exitcode(waited) if pid else None
                time.sleep(_LOOK_SECONDS * (not pid))
        finally:
            with suppress(ProcessLookupError):  # what tests have started
                os.killpg(self.pid, signal.SIGKILL)
            if status is None:
                os.kill(self.pid, signal.SIGKILL)  # it may not have had a group yet
                os.waitpid(self.pid, 0)
        with self.output:
            self.output.seek(0)
            return status, self.output.read().decode(errors="replace")


def _pytest(tests: Sequence[str]) -> int:
    import pytest

    options = ["-x", "-q", "-n0", "--tb=line", "-p", "no:cacheprovider", "-p", "no:randomly"]
    # Of what is imported already asserts are not rewritten, which are none of ours.
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    return pytest.main([*options, "-m", "not slow", *tests])

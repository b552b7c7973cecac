"""A process and all that it starts: tied to this one, and ended as a whole."""

import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from engines import tied_process
from harness.machine.interrupts import held_interrupts
from harness.machine.shared_memory import freed

_LOOK_SECONDS = 0.01


class Group:
    """A process that leads a group of its own; Linux kills both when this process ends.

    Options are those of `subprocess.Popen`. Raises OSError where it cannot be started.
    """

    def __init__(self, command: Sequence[str], **options: Any) -> None:
        self.process = tied_process.start_tied(command, start_new_session=True, **options)

    @property
    def pid(self) -> int:
        """Of the process, and of its group."""
        return self.process.pid

    def has_ended(self) -> bool:
        """Whether the process has; its number is nobody else's until `end`."""
        how = os.WEXITED | os.WNOWAIT | os.WNOHANG
        return self.process.returncode is not None or (
            os.waitid(os.P_PID, self.pid, how) is not None
        )

    def wait(self) -> None:
        """Return when the process has ended."""
        if self.process.returncode is None:
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)

    def end(self, grace_seconds: float = 0.0) -> int:
        """Kill what lives of the group; the process's exit status, negative for a signal's number.

        With a grace the process is asked to end first, by SIGTERM.
        """
        if self.process.returncode is None:
            if grace_seconds:
                self._ask_to_end(grace_seconds)
            # Only once it is waited for may the system give its number to another.
            with held_interrupts(), freed(self.pid), suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        return self.process.wait()

    def _ask_to_end(self, grace_seconds: float) -> None:
        deadline = time.monotonic() + grace_seconds
        os.kill(self.pid, signal.SIGTERM)
        while not self.has_ended() and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)


@contextmanager
def started(
    command: Sequence[str], *, grace_seconds: float = 0.0, **options: Any
) -> Iterator[Group]:
    """A `Group` for as long as the block lasts."""
    with ExitStack() as stack:
        with held_interrupts():  # between its start and its registration nobody would end it
            group = Group(command, **options)
            stack.callback(group.end, grace_seconds)
        yield group

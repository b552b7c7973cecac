"""One measurement at a time on a machine: who times trials holds a lease, and others wait for it.

Trials that count take none: a count does not mind what else runs.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import inf
from pathlib import Path

from harness.machine.held import HeldError, held
from harness.machine.other_work import BusyMachineError

VARIABLE = "GCBENCH_LEASE"
"""Names another file, of a part of the machine that nothing else runs on. Empty: no lease."""
_USUAL = "/tmp/gcbench-lease"
_LOOK_SECONDS = 0.5
LIKELY_UNTIL = "; likely until "
"""Before the time, in what is said of a holder that knows it."""

Expects = Callable[[float], None]


def nobody_hears(seconds: float) -> None:
    """Where nobody waits."""


@dataclass(slots=True)
class Lease:
    """``anyway``: measure beside whoever holds it. ``limit_seconds``: wait as long at most.

    Raises ValueError where the variable names a file by a relative path.
    """

    anyway: bool = False
    limit_seconds: float = inf
    beside: list[str] = field(default_factory=list)
    """Those who held it when this one measured all the same."""
    _path: str = field(init=False)

    def __post_init__(self) -> None:
        self._path = os.environ.get(VARIABLE, _USUAL)
        if self._path and not Path(self._path).is_absolute():
            raise ValueError(
                f"{VARIABLE}={self._path}: a lease that holds for all programs needs an absolute "
                f"path, such as {_USUAL}; empty: no lease"
            )

    @property
    def notes(self) -> list[str]:
        """What a result says of that."""
        return [f"Measured beside another gcbench, {owner}." for owner in self.beside]

    @contextmanager
    def hold(self, says: Callable[[str], None]) -> Iterator[Expects]:
        """Have the machine for oneself; ``says`` is told, at each look, who has it instead.

        What it gives is told how many seconds are likely left, which others that wait are told.
        Raises BusyMachineError after the limit.
        """
        deadline = time.monotonic() + self.limit_seconds
        with ExitStack() as stack:
            while (expects := self._takes(stack, says)) is None:
                if time.monotonic() > deadline:
                    raise BusyMachineError(
                        f"another measurement has not ended within {self.limit_seconds:g} s, so "
                        "nothing was timed; give --wait more time, or measure beside it "
                        "with --wait no"
                    )
                time.sleep(_LOOK_SECONDS)
            yield expects

    def _takes(self, stack: ExitStack, says: Callable[[str], None]) -> Expects | None:
        if not self._path:
            return nobody_hears
        try:
            say = stack.enter_context(held(Path(self._path)))
        except HeldError as error:
            if self.anyway:
                self.beside.append(error.owner)
            else:
                says(error.owner)
            return nobody_hears if self.anyway else None
        except OSError:
            return nobody_hears  # nobody can hold anything here, so nobody has to wait
        return lambda seconds: say(
            f"{LIKELY_UNTIL}{datetime.now() + timedelta(seconds=seconds):%H:%M:%S}"
        )

"""Waits until nobody else works on the machine, but not for ever."""

import re
import time
from collections.abc import Callable
from math import inf

from harness.machine.other_work import BusyMachineError, OtherWork, read_counters, since
from harness.running.lease import Lease

_LOOK_SECONDS = 3.0
_LOOKS = 2
"""Quiet looks in a row that count as quiet."""
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}


NOT = "no"


def lease_of(text: str) -> Lease:
    """What ``--wait`` says of another that measures here. Raises ValueError as `parse_limit`."""
    return Lease(text == NOT, parse_limit(text) or inf)


def parse_limit(text: str) -> float:
    """Seconds of "90", "90s", "10m" or "1h", in which the machine is to become quiet.

    0 for "" and "no". Raises ValueError for anything else.
    """
    if text in ("", NOT):
        return 0.0
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text)
    if not found or not float(found[1]):
        raise ValueError(f"--wait {text}: must be how long at most, as in 90s or 10m, or no")
    return float(found[1]) * _UNITS[found[2]]


def look() -> OtherWork:
    """What others do in the next seconds."""
    return since(read_counters(), _LOOK_SECONDS)


def wait_until_quiet(
    limit_seconds: float,
    say: Callable[[str], None],
    look: Callable[[], OtherWork] = look,
    now: Callable[[], float] = time.monotonic,
) -> OtherWork:
    """Return once nobody else is at work, with what was seen last.

    Raises BusyMachineError after ``limit_seconds``.
    """
    deadline, quiet = now() + limit_seconds, 0
    while True:
        seen = look()
        quiet = 0 if seen.is_busy else quiet + 1
        if quiet == _LOOKS:
            return seen
        left = deadline - now()
        words = f"others take {seen.others:.1f} of {seen.cores} cores"
        if seen.stolen:
            words += f", {100 * seen.stolen:.1f} % is stolen"
        if left <= 0:
            raise BusyMachineError(
                f"the machine did not become quiet within {limit_seconds:g} s ({words}), so "
                "nothing was measured; stop what else runs, or give --wait more time"
            )
        say(f"waiting for a quiet machine: {words}; {left:.0f} s left")

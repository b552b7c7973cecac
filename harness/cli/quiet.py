"""``--wait-quiet``: waits until nobody else works on the machine, but not for ever."""

import re
import time
from collections.abc import Callable

from rich.console import Console

from harness.machine.other_work import BusyMachineError, OtherWork, read_counters, since

_LOOK_SECONDS = 3.0
_LOOKS = 2
"""Quiet looks in a row that count as quiet."""
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}


def parse_limit(text: str) -> float:
    """Seconds of "90", "90s", "10m" or "1h"; 0 for "". Raises ValueError for anything else."""
    if not text:
        return 0.0
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text)
    if not found or not float(found[1]):
        raise ValueError(f"--wait-quiet {text}: must be how long at most, as in 90s, 10m or 1h")
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
                "nothing was measured; stop what else runs, or give --wait-quiet more time"
            )
        say(f"waiting for a quiet machine: {words}; {left:.0f} s left")


def wait_and_say(limit_seconds: float, *, quiet: bool) -> OtherWork:
    """The same while somebody looks on: a line on a terminal, one a minute elsewhere."""
    console = Console(stderr=True, quiet=quiet)
    if console.is_terminal:
        with console.status("waiting for a quiet machine") as status:
            return wait_until_quiet(limit_seconds, status.update)
    last = -60.0

    def say(words: str) -> None:
        nonlocal last
        if time.monotonic() - last >= 60:
            last = time.monotonic()
            console.print(words, highlight=False, soft_wrap=True)

    return wait_until_quiet(limit_seconds, say)

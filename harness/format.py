"""Numbers as people read them: three significant digits, a unit, and "–" for what is missing."""

import re
from collections.abc import Iterable, Sequence
from math import floor, isfinite, log10
from reprlib import Repr
from typing import TypeGuard

MISSING = "–"

_TIME_UNITS = ((1.0, 1.0, "s"), (1e-3, 1e-3, "ms"), (1e-7, 1e-6, "µs"), (0.0, 1e-9, "ns"))
"""(shown from, seconds in one, unit); µs already from 0.1, so that 0.35 and 1.3 µs share one."""


def _known(value: float | None) -> TypeGuard[float]:
    return value is not None and isfinite(value)


def number(value: float | None) -> str:
    """Three significant digits, no fraction from 100 up: "0.0821", "1.32", "1,024"."""
    if not _known(value):
        return MISSING
    if value == 0:
        return "0"
    rounded = float(f"{value:.2e}") if abs(value) < 1000 else round(value)
    return f"{rounded:,.{max(0, 2 - floor(log10(abs(rounded))))}f}"


def seconds(value: float | None) -> str:
    """A time given in seconds, in the unit that suits its size: "1.32 ms", "0.850 µs"."""
    if not _known(value):
        return MISSING
    if value == 0:
        return "0 s"
    unit_seconds, unit = next(
        (size, unit) for least, size, unit in _TIME_UNITS if abs(value) >= least
    )
    return f"{number(value / unit_seconds)} {unit}"


def count(value: float | None) -> str:
    """Things counted, to the digit where whole; means of such to a tenth, or three digits."""
    if not _known(value):
        return MISSING
    if value == round(value):
        return f"{value:,.0f}"
    return f"{value:,.1f}" if abs(value) >= 100 else number(value)


def setting(value: str | int | bool) -> str:
    """A switch as a command line has it: "off", "8,192", and of a class its name alone."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return count(value) if isinstance(value, int) else value.rpartition(".")[2]


def rough_percent(share: float) -> str:
    """A share that somebody has chosen, with no digit more than it has: "2 %"."""
    return f"{100 * share:g} %"


def percent(share: float | None, *, signed: bool = False) -> str:
    """A share of one in percent: "12.3 %", "0.04 %"; with its sign where ``signed``."""
    if not _known(share):
        return MISSING
    decimals = 1 if abs(share) >= 0.00995 or share == 0 else 2
    return f"{100 * share:{'+' if signed else ''},.{decimals}f} %"


def percent_range(low: float, high: float, *, signed: bool = False) -> str:
    """Two shares of one in percent: "16.7 to 23.1 %"."""
    return f"{percent(low, signed=signed).removesuffix(' %')} to {percent(high, signed=signed)}"


def interval(ratios: tuple[float, float]) -> str:
    """An interval of a ratio as changes: "-0.40 to +0.80 %"."""
    low, high = ratios
    return percent_range(low - 1, high - 1, signed=True)


def rounds(numbers: Iterable[int]) -> str:
    """How many rounds several figures are of: "9 rounds", "9 to 12 rounds"."""
    found = sorted(set(numbers))
    return f"{' to '.join(dict.fromkeys(map(str, (found[0], found[-1]))))} rounds"


def bytes_(value: float | None) -> str:
    """A size given in bytes, in powers of 1,024: "512 B", "4.00 KiB"."""
    if not _known(value):
        return MISSING
    for unit in ("B", "KiB", "MiB"):
        if abs(value) < 1023.5:
            return f"{number(value)} {unit}"
        value /= 1024
    return f"{number(value)} GiB"


def rate(value: float | None, unit: str) -> str:
    """Bytes or operations a second, in powers of 1,000: "3.90 GB/s", "44.5 TFLOP/s"."""
    if not _known(value):
        return MISSING
    for prefix in ("", "k", "M", "G"):
        if abs(value) < 999.5:
            return f"{number(value)} {prefix}{unit}"
        value /= 1000
    return f"{number(value)} T{unit}"


def ratio(value: float | None) -> str:
    """Candidate over baseline: "×1.034"."""
    return f"×{value:,.3f}" if _known(value) else MISSING


def with_unit(value: float | None, unit: str) -> str:
    """A metric's value in the unit its definition states (`harness.metrics.Metric.unit`)."""
    if not _known(value):
        return MISSING
    if unit == "s":
        return seconds(value)
    if unit == "B":
        return bytes_(value)
    if unit in ("B/s", "FLOP/s"):
        return rate(value, unit)
    if unit.startswith("share"):
        return percent(value)
    shown = number(value) if unit.endswith("/s") else count(value)
    return f"{shown} {unit}"


def plain_unit(unit: str) -> str:
    """A unit that is a word, which a heading can say for all; "" where it goes with each value."""
    return "" if unit in ("s", "B", "B/s", "FLOP/s") or unit.startswith("share") else unit


def bare(value: float | None, unit: str) -> str:
    """A value as `with_unit` has it, less a plain unit."""
    return with_unit(value, unit).strip().removesuffix(f" {plain_unit(unit)}")


def short_unit(unit: str) -> str:
    """asv's words for a unit as gcbench has them."""
    return {"seconds": "s", "bytes": "B", "unit": ""}.get(unit, unit)


_ORDERS = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters, and those that end a line or turn the direction in which it is read."""


def printable(text: str) -> str:
    """A text from somebody's file on one line, what a terminal would obey written as an escape."""
    return _ORDERS.sub(lambda found: ascii(found[0])[1:-1], text)


_REPR = Repr()
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = 60


def capitalised(words: str) -> str:
    """With a capital at the beginning, the rest as it stands: "TPOT median"."""
    return words[:1].upper() + words[1:]


def excerpt(value: object) -> str:
    """A value from somebody's file in Python's notation, however long or deep it is."""
    return _REPR.repr(value)


def one_of(commits: Sequence[str], digits: int = 10) -> str:
    """Commits of which one is meant, oldest first, in a few words."""
    short = [commit[:digits] for commit in commits]
    if len(short) > 2:
        return f"one of {len(short)} from {short[0]} to {short[-1]}"
    return " or ".join(short)

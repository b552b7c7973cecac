"""How a figure is written: by the functions that write it in reports."""

from collections.abc import Callable
from math import ceil
from typing import Any

from harness import format as fmt
from harness.experiment.result import MetricSamples


def in_its_unit(value: object) -> str:
    """A metric in the unit of its definition, a count to the digit, what is a text as it stands."""
    if isinstance(value, MetricSamples):
        return fmt.with_unit(value.value, value.unit)
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return fmt.count(value)
    raise ValueError("it has no unit of its own")


def _number(value: Any) -> float | None:
    return value.value if isinstance(value, MetricSamples) else value


def _less_one(ratio: Any) -> float | None:
    number = _number(ratio)
    return None if number is None else number - 1


FORMATS: dict[str, Callable[[Any], str]] = {
    "number": lambda value: fmt.number(_number(value)),
    "tenths": lambda value: f"{_number(value):,.1f}",
    "count": lambda value: fmt.count(_number(value)),
    "seconds": lambda value: fmt.seconds(_number(value)),
    "ms": lambda value: fmt.number(1e3 * (_number(value) or 0.0)),
    "µs": lambda value: fmt.number(1e6 * (_number(value) or 0.0)),
    "ns": lambda value: fmt.number(1e9 * (_number(value) or 0.0)),
    "minutes": lambda value: f"{ceil((_number(value) or 0.0) / 60)} minutes",
    "percent": lambda value: fmt.percent(_number(value)),
    "ratio": lambda value: fmt.ratio(_number(value)),
    "change": lambda value: fmt.percent(_less_one(value), signed=True),
    "growth": lambda value: fmt.percent(_less_one(value)),
    "times": lambda ci95: f"{fmt.number(ci95[0])} to {fmt.number(ci95[1])}",
    "bytes": fmt.bytes_,
    "bandwidth": lambda value: fmt.rate(value, "B/s"),
    "interval": fmt.interval,
}
"""``ms``, ``µs`` and ``ns`` are of seconds and leave the unit to the table's head, ``tenths`` has
always one, ``minutes`` are rounded up. ``change`` and ``growth`` are of a ratio, with and without
its sign; ``interval`` and ``times`` are of its interval, as changes and as it stands.
"""

"""``benchmarks.json``: what asv's benchmarks measure, in which unit, and which way is better.

asv writes a function's own attributes there, known to it or not: that is how a metric's direction,
kind and noise floor come with the results. asv itself knows no direction.
"""

import re
from collections.abc import Callable
from operator import contains
from pathlib import Path
from sys import float_info
from typing import Any, NamedTuple, TypeVar, get_args

import msgspec

from harness.format import excerpt
from harness.metrics import Direction, Metric, MetricKind
from harness.tracking.asv.json_files import read_json

BENCHMARKS_VERSION = 2

Attribute = TypeVar("Attribute")

ParameterPoint = tuple[str, ...]
"""A value for each parameter, in Python's notation, as asv stores it."""

_COSTS = ("time", "timeraw", "mem", "memory", "peakmem", "peakmemory")
_UNITS = {"time": "seconds", "timeraw": "seconds", "mem": "bytes", "peakmem": "bytes"}
_COSTLY_UNITS = {"seconds", "s", "ms", "us", "µs", "ns", "bytes", "b"} | {
    f"{scale}{byte}" for scale in "kmg" for byte in ("b", "ib")
}
_SAID = re.compile(
    r"[\s,;:]*[(\[]?\s*(lower|smaller|less|higher|larger|more) is better\s*[)\]]?", re.I
)
_NOISE_FLOOR = Metric._field_defaults["noise_floor"]


class Definition(NamedTuple):
    """A benchmark as it is now. ``version`` and ``params`` are None where nothing tells them.

    ``params``: the values that each parameter has. Not their product, the points: a line of JSON
    can stand for more of them than there are atoms.
    """

    unit: str
    direction: Direction
    kind: MetricKind
    noise_floor: float
    least_change: float
    version: str | None = None
    params: tuple[frozenset[str], ...] | None = None
    param_names: tuple[str, ...] = ()

    def is_current(self, version: str | None, point: ParameterPoint) -> bool:
        """Whether a figure of this version and point is one of this benchmark; asv's own rule."""
        same = self.version is None or version is None or version == self.version
        return same and (self.params is None or self._has(point))

    def _has(self, point: ParameterPoint) -> bool:
        params = self.params or ()
        return len(point) == len(params) and all(map(contains, params, point))

    def names(self, number: int) -> tuple[str, ...]:
        """Names for ``number`` parameters: its own where it has as many, asv's makeshift ones."""
        if len(self.param_names) == number:
            return self.param_names
        return tuple(f"param{position}" for position in range(1, number + 1))


def read_unit(unit: str) -> tuple[str, Direction | None]:
    """A unit less what it says of which way is better, and that, None where it says nothing.

    Times and sizes are costs.
    """
    said = _SAID.search(unit)
    bare = (unit[: said.start()] + unit[said.end() :]).strip() if said else unit
    bare = bare.lower() if bare.lower() in _UNITS.values() else bare
    if said:
        return bare, "lower" if said[1].lower() in ("lower", "smaller", "less") else "higher"
    return bare, "lower" if bare.lower() in _COSTLY_UNITS else None


class _Benchmark(msgspec.Struct):
    type: str = "track"
    unit: str = ""
    params: list[list[str]] = []
    param_names: list[str] = []
    version: str | None = None


def undescribed(benchmark: str) -> Definition:
    """A benchmark of which only the name is known: asv's own prefixes say the type."""
    prefix = benchmark.rpartition(".")[2].partition("_")[0]
    return Definition(
        unit=_UNITS.get(prefix, ""),
        direction="lower" if prefix in _COSTS else "neither",
        kind="timing",
        noise_floor=_NOISE_FLOOR,
        least_change=0.0,
    )


def read_definitions(path: Path, problems: list[str]) -> dict[str, Definition]:
    """All benchmarks by name; a sentence for each entry that is not as it should be.

    Raises StoreError where the file cannot be read.
    """
    found: dict[str, Definition] = {}
    for name, entry in read_json(path, BENCHMARKS_VERSION).items():
        try:
            found[name] = _definition(entry, f"{path}: {name}", problems)
        except msgspec.ValidationError as error:
            problems.append(f"{path}: {name} is not as asv writes it: {error}")
    return found


def _definition(entry: Any, where: str, problems: list[str]) -> Definition:
    known = msgspec.convert(entry, _Benchmark)

    def attribute(
        name: str, usual: Attribute, right: Callable[[Any], bool], must: str
    ) -> Attribute:
        value: Attribute = entry.get(name, usual)
        if right(value):
            return value
        problems.append(
            f"{where} has {name} {excerpt(value)}, taken as {usual!r}; it must be {must}"
        )
        return usual

    directions, kinds = get_args(Direction), get_args(MetricKind)
    unit, said = read_unit(known.unit)
    usual: Direction = "lower" if known.type in _COSTS else said or "neither"
    usual_kind: MetricKind = "timing"
    return Definition(
        unit=unit,
        direction=attribute("direction", usual, directions.__contains__, " or ".join(directions)),
        kind=attribute("kind", usual_kind, kinds.__contains__, " or ".join(kinds)),
        noise_floor=attribute("noise_floor", _NOISE_FLOOR, _is_size, "a number from 0 up"),
        least_change=attribute("least_change", 0.0, _is_size, "a number from 0 up"),
        version=known.version,
        params=tuple(map(frozenset, known.params)),
        param_names=_distinct(known.param_names[: len(known.params)]),
    )


def _is_size(value: Any) -> bool:
    return isinstance(value, int | float) and 0 <= value <= float_info.max


def _distinct(names: list[str]) -> tuple[str, ...]:
    first = {name: position for position, name in reversed(list(enumerate(names)))}
    return tuple(
        name if first[name] == position else f"{name}_{position + 1}"
        for position, name in enumerate(names)
    )

"""asv's results folder, read and never written.

```
benchmarks.json                          the benchmarks as they are now
<machine>/machine.json
<machine>/<8 of the commit>-<environment>.json
```
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import product
from math import isnan, nan
from pathlib import Path
from sys import float_info
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.files import StoreError
from harness.format import excerpt
from harness.statistics.mixture import FloatArray
from harness.tracking.asv.benchmarks import Definition, read_definitions, undescribed
from harness.tracking.asv.json_files import read_json
from harness.tracking.figure import BenchmarkFigures, BenchmarkOutcome, Points
from harness.tracking.folders import json_files, subfolders

RESULT_VERSION = 2
MACHINE_VERSION = 1
NOT_RESULTS = ("machine.json", "benchmarks.json")

_MOST_POINTS = 100_000
"""Of all benchmarks of a file."""
_MOST_PARAMETERS = 32

_Milliseconds = Annotated[int, msgspec.Meta(ge=0, le=9_000_000_000_000)]  # until the year 2255


class ResultFile(msgspec.Struct):
    """One file: a commit in an environment. ``params``: the machine's, and requirements."""

    commit_hash: str
    date: _Milliseconds
    env_name: str
    params: dict[str, Any]
    result_columns: list[str]
    results: dict[str, Any]


class _Row(msgspec.Struct):
    """One benchmark in a file; what asv cut off the end was null."""

    result: list[Any] | None = None
    params: list[list[str]] = []
    version: str | None = None
    started_at: _Milliseconds | None = None
    duration: float | None = None
    stats_ci_99_a: list[float | None] | None = None
    stats_ci_99_b: list[float | None] | None = None
    samples: list[list[float | None] | None] | None = None


def read_figures(folder: Path, problems: list[str]) -> list[BenchmarkFigures]:
    """All benchmarks of a results folder; a sentence in ``problems`` for what cannot be read."""
    definitions: dict[str, Definition] | None = None
    try:
        definitions = read_definitions(folder / "benchmarks.json", problems)
    except StoreError as problem:
        problems.append(
            f"{problem}; directions and versions are taken as unknown "
            "until `asv run --bench just-discover` writes it anew"
        )
    figures, points_of = list[BenchmarkFigures](), cache(_points)
    first: dict[tuple[str, str, str], Path] = {}
    for machine_folder in subfolders(folder, problems):
        paths = [p for p in json_files(machine_folder, problems) if p.name not in NOT_RESULTS]
        machine = _machine(machine_folder, problems) if paths else ""
        for path in paths:
            try:
                file = read_asv_result(path, machine)
            except StoreError as problem:
                problems.append(f"{problem}; left out: measure its commit again or remove it")
                continue
            key = (str(file.params["machine"]), file.env_name, file.commit_hash)
            if key in first:
                problems.append(f"{path} is of the same commit as {first[key]}; left out")
                continue
            first[key] = path
            figures += _figures(file, definitions, path, problems, points_of)
    return figures


def _machine(folder: Path, problems: list[str]) -> str:
    """The machine that a folder is of; "" where only its results can tell."""
    path = folder / "machine.json"
    try:
        name = read_json(path, MACHINE_VERSION).get("machine")
        if isinstance(name, str):
            return name
        problem = f"{path} names no machine"
    except StoreError as error:
        problem = str(error)
    problems.append(
        f"{problem}; the names in the results are taken, but asv passes over them all: "
        "`asv machine` and `asv run` write it anew"
    )
    return ""


def read_asv_result(path: Path, machine: str = "") -> ResultFile:
    """Read the file of a commit, which must be of ``machine`` where that is given.

    Raises StoreError.
    """
    try:
        file = msgspec.convert(read_json(path, RESULT_VERSION), ResultFile)
    except msgspec.ValidationError as error:
        raise StoreError(f"{path} is not a result as asv writes it: {error}") from error
    named = file.params.get("machine")
    if not isinstance(named, str):
        raise StoreError(f"{path} names no machine")
    if machine and named != machine:
        raise StoreError(
            f"{path} is of machine {excerpt(named)} and lies with those of {excerpt(machine)}"
        )
    return file


def _figures(
    file: ResultFile,
    definitions: Mapping[str, Definition] | None,
    path: Path,
    problems: list[str],
    points_of: "_PointsOf",
) -> Iterator[BenchmarkFigures]:
    room = _MOST_POINTS
    for benchmark, cells in file.results.items():
        where = f"{path}: {benchmark}"
        try:
            given = msgspec.convert(cells, list[Any])
            row = msgspec.convert(dict(zip(file.result_columns, given, strict=False)), _Row)
        except msgspec.ValidationError as error:
            problems.append(f"{where} is not as asv writes it: {error}; left out")
            continue
        if (expected := _number_of_points(row.params)) > room:
            problems.append(
                f"{where} has more points of its parameters than are read, "
                f"{_MOST_POINTS:,} in a file and {_MOST_PARAMETERS} parameters; left out"
            )
            continue
        room -= expected
        known = (definitions or {}).get(benchmark)
        definition = known or undescribed(benchmark)
        suite, _, function = benchmark.rpartition(".")
        if row.result is not None and len(row.result) != expected:
            problems.append(
                f"{where} has {len(row.result)} values for {expected} points of its parameters; "
                "those without a value are taken as failed"
            )
        points, is_current = points_of(
            benchmark, definition, row.version, tuple(map(tuple, row.params))
        )
        value, outcome = _values(row.result, points, path, problems)
        yield BenchmarkFigures(
            commit=file.commit_hash,
            date=file.date,
            machine=file.params["machine"],
            environment=file.env_name,
            suite=suite,
            benchmark=benchmark,
            metric=function.removeprefix("track_"),
            unit=definition.unit,
            direction=definition.direction,
            kind=definition.kind,
            noise_floor=definition.noise_floor,
            least_change=definition.least_change,
            duration=nan if row.duration is None else row.duration,
            measured=row.started_at,
            version=definition.version,
            result_version=row.version,
            points=points,
            value=value,
            outcome=outcome,
            ci_low=_floats(row.stats_ci_99_a, expected),
            ci_high=_floats(row.stats_ci_99_b, expected),
            samples=_cut(row.samples, expected),
            is_current=is_current & (known is not None or definitions is None),
        )


_PointsOf = Callable[
    [str, Definition, str | None, tuple[tuple[str, ...], ...]], tuple[Points, NDArray[np.bool_]]
]


def _points(
    benchmark: str, definition: Definition, version: str | None, params: tuple[tuple[str, ...], ...]
) -> tuple[Points, NDArray[np.bool_]]:
    """Each point of a benchmark, and whether a figure of it is one of the benchmark as it is."""
    names, all_points = definition.names(len(params)), list(product(*params))
    named = [f"{benchmark}({', '.join(point)})" if point else benchmark for point in all_points]
    by_name = [dict(zip(names, point, strict=True)) for point in all_points]
    current = np.array([definition.is_current(version, point) for point in all_points], bool)
    return Points(named, by_name), current


def _number_of_points(params: list[list[str]]) -> int:
    """How many there are, or more than are read: their product can have millions of digits."""
    number = 1
    for values in params:
        number *= len(values)
        if number > _MOST_POINTS:
            break
    return number if len(params) <= _MOST_PARAMETERS else _MOST_POINTS + 1


def _cut(values: list[Any] | None, number: int) -> list[Any]:
    """So many of them, None where there is none: asv cuts off what was null at the end."""
    found = (values or [])[:number]
    return found + [None] * (number - len(found))


def _floats(values: list[float | None] | None, number: int) -> FloatArray:
    return np.array(_cut(values, number), np.float64)


def _values(
    found: list[Any] | None, points: Points, path: Path, problems: list[str]
) -> tuple[FloatArray, list[BenchmarkOutcome]]:
    given = _cut(found, len(points.series))
    values, outcomes = np.full(len(given), nan), list[BenchmarkOutcome]()
    for place, each in enumerate(given):
        if each is None:
            outcomes.append("failed")
        elif isinstance(each, float) and isnan(each):
            outcomes.append("none")
        elif isinstance(each, int | float) and abs(each) <= float_info.max:
            values[place] = each
            outcomes.append("measured")
        else:
            problems.append(
                f"{path}: {points.series[place]} is {excerpt(each)}, which is no figure; "
                "taken as none"
            )
            outcomes.append("none")
    return values, outcomes

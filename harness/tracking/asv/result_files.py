"""asv's results folder, read and never written: one figure for each benchmark and point.

```
benchmarks.json                          the benchmarks as they are now
<machine>/machine.json
<machine>/<8 of the commit>-<environment>.json
```
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import product
from math import isnan, nan
from pathlib import Path
from sys import float_info
from typing import Annotated, Any

import msgspec

from harness.files import StoreError
from harness.format import excerpt
from harness.tracking.asv.benchmarks import Definition, read_definitions, undescribed
from harness.tracking.asv.json_files import read_json
from harness.tracking.figure import BenchmarkOutcome, Figure
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


def read_figures(folder: Path, problems: list[str]) -> list[Figure]:
    """All figures of a results folder; a sentence in ``problems`` for what cannot be read."""
    definitions: dict[str, Definition] | None = None
    try:
        definitions = read_definitions(folder / "benchmarks.json", problems)
    except StoreError as problem:
        problems.append(
            f"{problem}; directions and versions are taken as unknown "
            "until `asv run --bench just-discover` writes it anew"
        )
    figures: list[Figure] = []
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
            figures += _figures(file, definitions, path, problems)
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
    file: ResultFile, definitions: Mapping[str, Definition] | None, path: Path, problems: list[str]
) -> Iterator[Figure]:
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
        names = definition.names(len(row.params))
        suite, _, function = benchmark.rpartition(".")
        if row.result is not None and len(row.result) != expected:
            problems.append(
                f"{where} has {len(row.result)} values for {expected} points of its parameters; "
                "those without a value are taken as failed"
            )
        for index, (point, series, params) in enumerate(
            _points(benchmark, names, tuple(map(tuple, row.params)))
        ):
            value, outcome = _value(_at(row.result, index), f"{path}: {series}", problems)
            yield Figure(
                commit=file.commit_hash,
                date=file.date,
                machine=file.params["machine"],
                environment=file.env_name,
                suite=suite,
                benchmark=benchmark,
                metric=function.removeprefix("track_"),
                series=series,
                value=value,
                outcome=outcome,
                unit=definition.unit,
                direction=definition.direction,
                kind=definition.kind,
                noise_floor=definition.noise_floor,
                least_change=definition.least_change,
                ci_low=_known(_at(row.stats_ci_99_a, index)),
                ci_high=_known(_at(row.stats_ci_99_b, index)),
                samples=_at(row.samples, index),
                duration=_known(row.duration),
                measured=row.started_at,
                version=definition.version,
                result_version=row.version,
                is_current=(known is not None or definitions is None)
                and definition.is_current(row.version, point),
                params=params,
            )


@lru_cache(maxsize=1024)
def _points(
    benchmark: str, names: tuple[str, ...], params: tuple[tuple[str, ...], ...]
) -> list[tuple[tuple[str, ...], str, dict[str, str]]]:
    """Each point of a benchmark, its series and its parameters by name: the files share them."""
    return [
        (
            point,
            f"{benchmark}({', '.join(point)})" if point else benchmark,
            dict(zip(names, point, strict=True)),
        )
        for point in product(*params)
    ]


def _number_of_points(params: list[list[str]]) -> int:
    """How many there are, or more than are read: their product can have millions of digits."""
    number = 1
    for values in params:
        number *= len(values)
        if number > _MOST_POINTS:
            break
    return number if len(params) <= _MOST_PARAMETERS else _MOST_POINTS + 1


def _at(values: list[Any] | None, index: int) -> Any:
    return values[index] if values is not None and index < len(values) else None


def _known(value: float | None) -> float:
    return nan if value is None else value


def _value(found: Any, where: str, problems: list[str]) -> tuple[float, BenchmarkOutcome]:
    if found is None:
        return nan, "failed"
    if isinstance(found, float) and isnan(found):
        return nan, "none"
    if isinstance(found, int | float) and abs(found) <= float_info.max:
        return float(found), "measured"
    problems.append(f"{where} is {excerpt(found)}, which is no figure; taken as none")
    return nan, "none"

"""asv's layout, written as asv writes it, for results that a test makes up."""

import json
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

COLUMNS = (
    "result",
    "params",
    "version",
    "started_at",
    "duration",
    "stats_ci_99_a",
    "stats_ci_99_b",
    "stats_q_25",
    "stats_q_75",
    "stats_number",
    "stats_repeat",
    "samples",
    "profile",
)


class Benchmark(NamedTuple):
    """A benchmark and what `benchmarks.json` says of it."""

    name: str
    params: Mapping[str, list[Any]] = {}
    version: str = "1"
    attributes: Mapping[str, Any] = {}

    @property
    def points(self) -> list[list[str]]:
        """A list of values for each parameter, as asv keeps them."""
        return [[repr(value) for value in values] for values in self.params.values()]

    @property
    def series(self) -> list[str]:
        """A name for each point, as asv shows it."""
        points = product(*self.points)
        return [f"{self.name}({', '.join(point)})" if point else self.name for point in points]


def write_benchmarks(folder: Path, benchmarks: list[Benchmark]) -> None:
    """``benchmarks.json``."""
    entries = {
        each.name: {
            "name": each.name,
            "type": "track",
            "unit": "unit",
            "version": each.version,
            "params": each.points,
            "param_names": list(each.params),
            **each.attributes,
        }
        for each in benchmarks
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "benchmarks.json").write_text(json.dumps({**entries, "version": 2}))


def write_commit(
    folder: Path,
    commit: str,
    day: int,
    results: Sequence[tuple[Benchmark, list[Any]]] = (),
    *,
    machine: str = "box",
    environment: str = "py3.11",
    **stats: list[Any],
) -> Path:
    """One commit's file, its machine's too; ``stats`` are columns that all benchmarks share."""
    (folder / machine).mkdir(parents=True, exist_ok=True)
    about = {"machine": machine, "version": 1}
    (folder / machine / "machine.json").write_text(json.dumps(about))
    rows = {}
    for benchmark, values in results:
        row: list[Any] = [stats.get(column) for column in COLUMNS]
        row[:5] = [values, benchmark.points, benchmark.version, day * 86_400_000, 0.5]
        while row and row[-1] is None:
            row.pop()
        rows[benchmark.name] = row
    path = folder / machine / f"{commit[:8]}-{environment}.json"
    content = {
        "commit_hash": commit,
        "env_name": environment,
        "date": day * 86_400_000,
        "params": {"machine": machine},
        "python": "3.11",
        "requirements": {},
        "env_vars": {},
        "result_columns": COLUMNS,
        "results": rows,
        "durations": {},
        "version": 2,
    }
    path.write_text(json.dumps(content))
    return path

"""A seeded history as asv would have measured it, with what changed planted and known.

    PYTHONPATH=. python tests/dashboards/planted.py FOLDER

writes ``FOLDER/results`` and, with the commits' messages, the repository ``FOLDER/repository``.
"""

import json
import random
import subprocess
import sys
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

HANDOFFS = (
    "list_of_lists/per_request",
    "list_of_arrays/per_request",
    "list_of_arrays/columnar",
    "flat_arrays/per_request",
    "flat_arrays/columnar",
)
POLICIES = ("default", "freeze", "batch_threshold", "disabled")
WORKLOADS = ("opt125m-48-200", "churn-cut")
FIRST_DAY = 20_454  # 1 January 2026
DAY_MS = 86_400_000

HOSTILE_MESSAGE = "<script>alert(1)</script> & \"quoted\" 'words'"
HOSTILE_MACHINE = '"><img src=x onerror=alert(2)>'
HOSTILE_PARAMETER = "</script><script>alert(3)</script>"


class Benchmark(NamedTuple):
    """A metric, how large it is, and what is planted: (point, day from the end, factor)."""

    name: str
    unit: str
    direction: str
    kind: str
    size: float
    planted: tuple[tuple[int, int, float], ...] = ()


BENCHMARKS = (
    Benchmark("harness.suites.collections.track_gc_collections_gen0", "collections", "lower",
              "exact", 900, ((3, 1, 1.4), (0, 60, 0.7), (7, 90, 1.2))),
    Benchmark("harness.suites.serving.track_host_time_per_request_step", "s", "lower", "timing",
              1.1e-6, ((4, 3, 1.3), (9, 45, 1.15), (2, 120, 0.8), (12, 1, 1.3))),
    Benchmark("harness.suites.serving.track_request_throughput", "req/s", "higher", "timing",
              1800, ((6, 3, 1.25), (1, 75, 0.9))),
)  # fmt: skip
POINTS = tuple(product(HANDOFFS, POLICIES))
SENTENCE = "Last night: 2 regressions, 1 improvement, 1 suspicious, 56 with no change shown."


class Planted(NamedTuple):
    """Where it lies; ``hashes`` oldest first."""

    results: Path
    repository: Path
    hashes: list[str]

    @property
    def last_day(self) -> int:
        """Days since 1970."""
        return FIRST_DAY + len(self.hashes) - 1


def plant(folder: Path, commits: int = 200, machine: str = "box", hostile: bool = False) -> Planted:
    """Write the results and the repository; 20 series a benchmark."""
    repository = folder / "repository"
    messages = [f"Change number {number}" for number in range(commits)]
    messages[-1] = "Keep a note of each request until the step is over"
    if hostile:
        messages[-1] = HOSTILE_MESSAGE
    hashes = _repository(repository, messages)
    results = folder / "results"
    place = results / "asv" / "box"
    place.mkdir(parents=True)
    params = [list(map(repr, HANDOFFS)), list(map(repr, POLICIES))]
    if hostile:
        params[1][-1] = repr(HOSTILE_PARAMETER)
    (place / "machine.json").write_text(json.dumps({
        "machine": machine, "version": 1, "cpu": "AMD EPYC", "num_cpu": "2", "ram": "24 GiB",
        "os": "Linux", "arch": "x86_64",
    }))  # fmt: skip
    entries: dict[str, Any] = {
        each.name: {
            "name": each.name, "type": "track", "unit": each.unit, "version": "1",
            "direction": each.direction, "kind": each.kind, "noise_floor": 0.02,
            "least_change": 2 if each.kind == "exact" else 0, "params": params,
            "param_names": ["handoff", "gc"],
        }
        for each in BENCHMARKS
    }  # fmt: skip
    (place.parent / "benchmarks.json").write_text(json.dumps({**entries, "version": 2}))
    random_ = random.Random(7)
    for number, commit in enumerate(hashes):
        rows = {each.name: _row(each, number, commits, params, random_) for each in BENCHMARKS}
        date = (FIRST_DAY + number) * DAY_MS
        (place / f"{commit[:8]}-py3.11.json").write_text(json.dumps({
            "commit_hash": commit, "env_name": "py3.11", "date": date,
            "params": {"machine": machine}, "python": "3.11", "requirements": {}, "env_vars": {},
            "result_columns": ["result", "params", "version", "started_at", "duration",
                               "stats_ci_99_a", "stats_ci_99_b"],
            "results": rows, "durations": {}, "version": 2,
        }))  # fmt: skip
    return Planted(results, repository, hashes)


def _row(
    each: Benchmark, number: int, commits: int, params: list[list[str]], random_: random.Random
) -> list[Any]:
    values: list[float] = []
    for place in range(len(POINTS)):
        value = each.size * (1 + 0.23 * (place % 5)) * (1 + 0.1 * (place // 5))
        for point, from_end, factor in each.planted:
            if point == place and number >= commits - from_end:
                value *= factor
        if each.kind == "exact":
            values.append(round(value))
        else:
            values.append(value * random_.gauss(1, 0.008))
    started = (FIRST_DAY + number) * DAY_MS + 3 * 3_600_000
    row = [values, params, "1", started, 0.5]
    if each.kind == "timing":
        row += [[value * 0.97 for value in values], [value * 1.03 for value in values]]
    return row


def _repository(folder: Path, messages: list[str]) -> list[str]:
    folder.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", "-b", "main", str(folder)], check=True)
    stream = []
    for number, message in enumerate(messages):
        words, when = message.encode(), f"{(FIRST_DAY + number) * 86_400} +0000"
        stream.append(
            f"commit refs/heads/main\ncommitter A <a@example.invalid> {when}\n"
            f"data {len(words)}\n{message}\n\n"
        )
    git = ["git", "-C", str(folder)]
    subprocess.run([*git, "fast-import", "--quiet"], input="".join(stream), text=True, check=True)
    listed = subprocess.run(
        [*git, "rev-list", "--reverse", "main"], capture_output=True, text=True, check=True
    )
    return listed.stdout.split()


if __name__ == "__main__":
    plant(Path(sys.argv[1]))


def morning(planted: Planted) -> datetime:
    """The morning after the last commit was measured."""
    return datetime.fromtimestamp(planted.last_day * 86_400 + 30 * 3600, UTC)

"""A seeded history as asv would have measured it, with what changed planted and known.

    PYTHONPATH=. python tests/dashboards/planted.py FOLDER

writes ``FOLDER/results``, the ``FOLDER/asv.conf.json`` that they are of and, with the commits'
messages, the repository ``FOLDER/repository``.
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
    """A metric, how large it is, times a factor for each hand-off and each policy, and what is
    planted: (point, day from the end, factor).
    """

    name: str
    unit: str
    direction: str
    kind: str
    size: float
    handoffs: tuple[float, ...]
    policies: tuple[float, ...]
    planted: tuple[tuple[int, int, float], ...] = ()


BENCHMARKS = (
    Benchmark(
        "harness.suites.collections.track_gc_collections_gen0",
        "collections",
        "lower",
        "exact",
        1080,
        (1, 1, 0.12, 1, 0.04),
        (1, 1, 0.4, 0),
        ((2, 1, 1.4), (0, 60, 0.7), (5, 90, 1.2)),
    ),
    Benchmark(
        "harness.suites.serving.track_host_time_per_request_step",
        "s",
        "lower",
        "timing",
        1.1e-6,
        (1, 1.1, 0.7, 1.1, 0.5),
        (1, 0.8, 0.9, 0.75),
        ((4, 3, 1.3), (9, 45, 1.15), (2, 120, 0.8), (12, 1, 1.3)),
    ),
    Benchmark(
        "harness.suites.serving.track_request_throughput",
        "req/s",
        "higher",
        "timing",
        1400,
        (1, 0.95, 1.5, 0.95, 1.9),
        (1, 1.2, 1.1, 1.25),
        ((6, 3, 1.25), (1, 75, 0.9)),
    ),
)
MESSAGES = {
    1: "Keep a note of each request until the step is over",
    3: "Sort the hand-off by block before it is read",
    45: "Count the blocks that a request has in one place",
    60: "Hand out block ids from a free list",
}
"""By the day from the end."""
AUTHORS = ("Ada Example", "Bo Example", "Chidi Example")
POINTS = tuple(product(HANDOFFS, POLICIES))
SENTENCE = (
    "Commits of 6 to 8 January 2026: 2 regressions, 1 improvement, 1 suspicious, "
    "56 with no change shown."
)


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
    for from_end, message in MESSAGES.items():
        if from_end <= commits:
            messages[-from_end] = message
    if hostile:
        messages[-1] = HOSTILE_MESSAGE
    hashes = _repository(repository, messages)
    results = folder / "results"
    (folder / "asv.conf.json").write_text(
        json.dumps(
            {
                "version": 1,
                "project": "engine",
                "repo": "repository",
                "branches": ["main"],
                "results_dir": "results/asv",
            }
        )
    )
    place = results / "asv" / "box"
    place.mkdir(parents=True)
    params = [list(map(repr, HANDOFFS)), list(map(repr, POLICIES))]
    if hostile:
        params[1][-1] = repr(HOSTILE_PARAMETER)
    (place / "machine.json").write_text(
        json.dumps(
            {
                "machine": machine,
                "version": 1,
                "cpu": "AMD EPYC",
                "num_cpu": "2",
                "ram": "24 GiB",
                "os": "Linux",
                "arch": "x86_64",
            }
        )
    )
    entries: dict[str, Any] = {
        each.name: {
            "name": each.name,
            "type": "track",
            "unit": each.unit,
            "version": "1",
            "direction": each.direction,
            "kind": each.kind,
            "noise_floor": 0.02,
            "least_change": 2 if each.kind == "exact" else 0,
            "params": params,
            "param_names": ["handoff", "gc"],
        }
        for each in BENCHMARKS
    }
    (place.parent / "benchmarks.json").write_text(json.dumps({**entries, "version": 2}))
    random_ = random.Random(7)
    for number, commit in enumerate(hashes):
        rows = {each.name: _row(each, number, commits, params, random_) for each in BENCHMARKS}
        date = (FIRST_DAY + number) * DAY_MS
        (place / f"{commit[:8]}-py3.11.json").write_text(
            json.dumps(
                {
                    "commit_hash": commit,
                    "env_name": "py3.11",
                    "date": date,
                    "params": {"machine": machine},
                    "python": "3.11",
                    "requirements": {},
                    "env_vars": {},
                    "result_columns": [
                        "result",
                        "params",
                        "version",
                        "started_at",
                        "duration",
                        "stats_ci_99_a",
                        "stats_ci_99_b",
                    ],
                    "results": rows,
                    "durations": {},
                    "version": 2,
                }
            )
        )
    return Planted(results, repository, hashes)


def _row(
    each: Benchmark, number: int, commits: int, params: list[list[str]], random_: random.Random
) -> list[Any]:
    values: list[float] = []
    for place in range(len(POINTS)):
        value = each.size * each.handoffs[place // len(POLICIES)]
        value *= each.policies[place % len(POLICIES)]
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
            f"commit refs/heads/main\ncommitter {AUTHORS[number % 3]} <a@example.invalid> {when}\n"
            f"data {len(words)}\n{message}\n"
            "M 100644 inline engines/engine.py\ndata 0\n\n\n"
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

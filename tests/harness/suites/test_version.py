"""asv's version of a benchmark: it changes with what measures and what is replayed."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.suites import collections, serving
from harness.suites.grid import CHURN, DECODE, HANDOFFS, Tracked, tracked
from harness.suites.version import harness_hash, needed, version

ROOT = Path(__file__).parents[3]
SUITE = "harness.suites.collections"
PEAK = tracked(
    "tracked_peak_per_step", {"device": "null"}, handoff=HANDOFFS[:1], workload=(DECODE,)
)

ALL = """
import json, sys
from harness.suites import collections, serving
from harness.suites.version import version
print(json.dumps([version(each, "harness.suites.serving")
                  for each in [*collections.TABLE, *serving.TABLE]]))
"""

LOADED = """
import json, sys
import harness.trial.process, harness.experiment.local_executor, harness.experiment.plan
print(json.dumps(sorted(name for name in sys.modules if name.split(".")[0] in sys.argv[1:])))
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the harness and the workloads elsewhere; it has no engines at all."""
    for package in ("gcbench", "harness", "workloads"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, tmp_path / package, ignore=ignored)
    return tmp_path


def test_equal_sources_have_one_version_wherever_they_lie(tree: Path) -> None:
    """No path, no time and no engine is in it: the copy has none."""
    assert version(PEAK, SUITE, tree) == version(PEAK, SUITE, ROOT)
    crlf = tree / "harness" / "trial" / "compute_metrics.py"
    crlf.write_bytes(crlf.read_bytes().replace(b"\n", b"\r\n"))
    harness_hash.cache_clear()
    assert version(PEAK, SUITE, tree) == version(PEAK, SUITE, ROOT)


def test_another_process_finds_the_same_versions(fresh_interpreter: Callable[..., Any]) -> None:
    here = [
        version(each, "harness.suites.serving") for each in [*collections.TABLE, *serving.TABLE]
    ]
    assert fresh_interpreter(ALL) == here
    assert len(set(here)) == len(here)


@pytest.mark.parametrize(
    ("file", "is_another"),
    [
        ("harness/trial/compute_metrics.py", True),
        ("harness/collector/window.py", True),
        ("gcbench/opcodes.py", True),
        ("harness/experiment/plan.py", True),
        ("harness/experiment/local_executor.py", True),
        ("workloads/schedule.py", True),
        ("harness/suites/collections.py", True),
        ("harness/suites/grid.py", True),
        ("harness/suites/serving.py", False),
        ("harness/metrics.py", False),
        ("harness/statistics/verdict.py", False),
        ("harness/cli/compare.py", False),
        ("harness/report/terminal.py", False),
    ],
)
def test_what_measures_is_in_it_and_nothing_else(tree: Path, file: str, is_another: bool) -> None:
    before = version(PEAK, SUITE, tree)
    (tree / file).write_text((tree / file).read_text() + "\nADDED = 1\n")
    harness_hash.cache_clear()
    assert (version(PEAK, SUITE, tree) != before) is is_another


def test_the_metrics_row_and_the_workload_are_in_it() -> None:
    redefined = PEAK._replace(metric=PEAK.metric._replace(definition="something else"))
    floor = PEAK._replace(metric=PEAK.metric._replace(noise_floor=0.5))
    churn = PEAK._replace(parameters=dict(PEAK.parameters) | {"workload": (CHURN,)})
    versions = {version(each, SUITE) for each in (PEAK, redefined, floor, churn)}
    assert len(versions) == 4


def test_it_needs_every_module_that_a_trial_loads(fresh_interpreter: Callable[..., Any]) -> None:
    """The oracle is Python itself: what a fresh interpreter has loaded."""
    loaded = set(fresh_interpreter(LOADED, "gcbench", "harness", "workloads"))
    found = needed(
        ROOT,
        ["harness.trial.process", "harness.experiment.local_executor", "harness.experiment.plan"],
    )
    assert loaded <= found.keys()
    assert not [name for name in found if name.startswith("engines")]


def test_a_module_that_is_not_there_is_named(tree: Path) -> None:
    (tree / "harness" / "trial" / "compute_metrics.py").unlink()
    harness_hash.cache_clear()
    with pytest.raises(ValueError, match=r"compute_metrics\.py is not there, though"):
        version(PEAK, SUITE, tree)


def test_every_suite_hashes_its_own_grid() -> None:
    """The name that a suite gives is its own module's, by which the hash finds the file."""
    for module, functions in ((collections, collections.TABLE), (serving, serving.TABLE)):
        for each in functions:
            function = vars(module)[f"track_{each.metric.name}"]
            assert function.version == version(_as(each), module.__name__)


def _as(each: Tracked) -> Tracked:
    return Tracked(each.metric, dict(each.parameters), dict(each.fixed))

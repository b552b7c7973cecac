"""asv's version of a benchmark: it changes with what decides a figure and what is replayed."""

import ast
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.suites import collections, serving
from harness.suites.grid import CHURN, DECODE, HANDOFFS, Tracked, tracked
from harness.suites.version import ASIDE, harness_hash, needed, version

ROOT = Path(__file__).parents[3]
SUITE = "harness.suites.collections"
PEAK = tracked(
    "tracked_peak_per_step", {"device": "null"}, handoff=HANDOFFS[:1], workload=(DECODE,)
)

Edited = Callable[[str, Callable[[str], str]], str]
"""The version where a file, by its path, is what a function makes of its text."""

ALL = """
import json, sys
from harness.suites import collections, serving
from harness.suites.version import version
print(json.dumps([version(each, "harness.suites.serving")
                  for each in [*collections.TABLE, *serving.TABLE]]))
"""

LOADED = """
import json, sys
import harness.trial.process, harness.experiment.local_executor
print(json.dumps(sorted(name for name in sys.modules if name.split(".")[0] in sys.argv[1:])))
"""


def _copy(folder: Path) -> Path:
    """The harness and the workloads elsewhere; there are no engines at all."""
    for package in ("gcbench", "harness", "workloads"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, folder / package, ignore=ignored)
    return folder


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy to change as one likes."""
    return _copy(tmp_path)


@pytest.fixture(scope="module")
def before() -> str:
    """The version of the tree before anything in it is changed."""
    return version(PEAK, SUITE, ROOT)


@pytest.fixture(scope="module")
def edited(before: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Edited]:
    """The version of a copy, one file of which is another as long as it takes."""
    tree = _copy(tmp_path_factory.mktemp("copy"))

    def version_with(file: str, change: Callable[[str], str]) -> str:
        source = (tree / file).read_text()
        (tree / file).write_text(change(source))
        try:
            return _afresh(tree)
        finally:
            (tree / file).write_text(source)

    yield version_with
    assert _afresh(tree) == before, "each edit was taken back"


def test_equal_sources_have_one_version_wherever_they_lie(tree: Path) -> None:
    """No path, no time and no engine is in it: the copy has none."""
    assert version(PEAK, SUITE, tree) == version(PEAK, SUITE, ROOT)
    crlf = tree / "harness" / "trial" / "compute_metrics.py"
    crlf.write_bytes(crlf.read_bytes().replace(b"\n", b"\r\n"))
    assert _afresh(tree) == version(PEAK, SUITE, ROOT)


def test_another_process_finds_the_same_versions(fresh_interpreter: Callable[..., Any]) -> None:
    here = [
        version(each, "harness.suites.serving") for each in [*collections.TABLE, *serving.TABLE]
    ]
    assert fresh_interpreter(ALL) == here
    assert len(set(here)) == len(here)


def test_a_docstring_or_a_comment_begins_no_series(tree: Path, before: str) -> None:
    for name in needed(tree, [SUITE, "harness.trial.process"]):
        path = _file(tree, name)
        source = path.read_text().replace('"""', '"""Nobody reads this. ', 1)
        path.write_text(source + "\n# Nor this.\n")
    assert _afresh(tree) == before


@pytest.mark.slow
def test_layout_begins_no_series(tree: Path, before: str) -> None:
    for name in needed(tree, [SUITE, "harness.trial.process"]):
        path = _file(tree, name)
        path.write_text(ast.unparse(ast.parse(path.read_text())))
    assert _afresh(tree) == before


def test_a_module_that_is_moved_begins_no_series(tree: Path, before: str) -> None:
    """One whose names are imported, one that is imported itself, one into a new package."""
    _move(tree, "harness.trial.compute_metrics", "harness.trial.figures_of_one")
    _move(tree, "harness.collector.window", "harness.trial.measured_window")
    (tree / "harness" / "later").mkdir()
    (tree / "harness" / "later" / "__init__.py").write_text('"""Many trials."""\n')
    _move(tree, "harness.experiment.rounds", "harness.later.in_turn")
    assert _afresh(tree) == before


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("harness/experiment/executor.py", "_ATTEMPTS = 3", "_ATTEMPTS = 4"),
        ("harness/experiment/composed.py", "1 + share", "2 + share"),
        ("harness/suites/figures.py", "/ 1e9, 99)", "/ 1e9, 90)"),
        ("harness/suites/figures.py", "len(known) < 2", "len(known) < 3"),
        ("harness/statistics/percentile.py", "_DOUBT = 0.01", "_DOUBT = 0.05"),
        ("harness/trial/compute_metrics.py", "1e9", "1e6"),
        ("harness/trial/client.py", "self._in_flight < self._cap", "self._in_flight <= self._cap"),
    ],
)
def test_a_constant_or_an_expression_that_decides_begins_a_series(
    edited: Edited, before: str, file: str, old: str, new: str
) -> None:
    assert old in (ROOT / file).read_text()
    assert edited(file, lambda source: source.replace(old, new)) != before


@pytest.mark.parametrize(
    ("file", "is_another"),
    [
        ("harness/collector/window.py", True),
        ("gcbench/opcodes.py", True),
        ("harness/experiment/plan.py", True),
        ("harness/experiment/outcomes.py", True),
        ("harness/experiment/store.py", True),
        ("workloads/schedule.py", True),
        ("harness/suites/collections.py", True),
        ("harness/suites/figures.py", True),
        ("harness/suites/grid.py", True),
        ("harness/suites/serving.py", False),
        ("harness/suites/track.py", False),
        ("harness/metrics.py", False),
        ("harness/statistics/verdict.py", False),
        ("harness/statistics/paired_ratio.py", False),
        ("harness/cli/compare.py", False),
        ("harness/render/terminal.py", False),
        ("workloads/catalog.py", False),
    ],
)
def test_what_decides_is_in_it_and_nothing_else(
    edited: Edited, before: str, file: str, is_another: bool
) -> None:
    assert (edited(file, lambda source: f"{source}\nADDED = 1\n") != before) is is_another


def test_what_stands_aside_is_there() -> None:
    assert [name for name in sorted(ASIDE) if not _file(ROOT, name).exists()] == []


def test_the_metrics_row_and_the_workload_are_in_it() -> None:
    redefined = PEAK._replace(metric=PEAK.metric._replace(definition="something else"))
    floor = PEAK._replace(metric=PEAK.metric._replace(noise_floor=0.5))
    churn = PEAK._replace(parameters=dict(PEAK.parameters) | {"workload": (CHURN,)})
    versions = {version(each, SUITE) for each in (PEAK, redefined, floor, churn)}
    assert len(versions) == 4
    renamed = PEAK._replace(metric=PEAK.metric._replace(noun="height", counted_as="feet"))
    assert version(renamed, SUITE) in versions


def test_it_needs_every_module_that_a_trial_loads(fresh_interpreter: Callable[..., Any]) -> None:
    """The oracle is Python itself: what a fresh interpreter has loaded."""
    loaded = set(fresh_interpreter(LOADED, "gcbench", "harness", "workloads"))
    found = needed(ROOT, ["harness.trial.process", "harness.experiment.local_executor"])
    assert loaded - ASIDE <= found.keys()
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


def _afresh(tree: Path) -> str:
    harness_hash.cache_clear()
    return version(PEAK, SUITE, tree)


def _file(tree: Path, name: str) -> Path:
    path = tree.joinpath(*name.split("."))
    package = path / "__init__.py"
    return package if package.exists() else path.with_suffix(".py")


def _move(tree: Path, old: str, new: str) -> None:
    """Move a module and have all others import it from there."""
    _file(tree, old).rename(_file(tree, new))
    (room, name), (new_room, new_name) = (each.rsplit(".", 1) for each in (old, new))
    for path in tree.rglob("*.py"):
        lines = []
        source = path.read_text()
        is_imported = re.search(rf"^from {room} import .*\b{name}\b", source, re.MULTILINE)
        for line in source.replace(f"from {old} import", f"from {new} import").splitlines():
            if is_imported and re.match(rf"\s*from {room} import", line):
                others = [
                    each for each in re.findall(r"\w+", line.split(" import ")[1]) if each != name
                ]
                lines += [f"from {room} import {', '.join(others)}"] if others else []
                lines += [f"from {new_room} import {new_name}"]
            else:
                lines.append(re.sub(rf"\b{name}\.", f"{new_name}.", line) if is_imported else line)
        path.write_text("\n".join(lines) + "\n")

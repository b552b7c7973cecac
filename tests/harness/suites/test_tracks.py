"""asv's functions: their attributes are the table's, their parameters make cells without holes."""

import inspect
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import msgspec
import pytest

from harness.experiment.grid import traits
from harness.metrics import METRICS
from harness.suites import collections, output_processing, serving
from harness.suites.grid import Tracked
from harness.suites.measure import measure_suite
from harness.suites.track import one_sentence

SUITES = (collections, output_processing, serving)
ALL = [(suite, each) for suite in SUITES for each in suite.TABLE]
IDS = [each.metric.name for _, each in ALL]


def function(suite: ModuleType, each: Tracked) -> Any:
    return vars(suite)[f"track_{each.metric.name}"]


@pytest.mark.parametrize(("suite", "each"), ALL, ids=IDS)
def test_a_function_carries_its_metrics_row(suite: ModuleType, each: Tracked) -> None:
    """asv writes a function's own attributes into benchmarks.json, for readers to go by."""
    row = METRICS[each.metric.name]
    own = function(suite, each)
    carried = ("unit", "direction", "kind", "noise_floor", "least_change")
    assert {name: getattr(own, name) for name in carried} == {
        name: getattr(row, name) for name in carried
    }
    assert own.__name__ == f"track_{row.name}"
    assert own.pretty_name
    assert row.definition in own.pretty_source
    assert re.fullmatch("[0-9a-f]{16}", own.version)
    json.dumps([value for name, value in vars(own).items() if not name.startswith("_")])


@pytest.mark.parametrize(("suite", "each"), ALL, ids=IDS)
def test_every_tuple_of_parameters_is_a_cell_of_its_own(suite: ModuleType, each: Tracked) -> None:
    """`cross` refuses what does not go together, so none of these is a hole."""
    own = function(suite, each)
    assert own.param_names == list(each.parameters)
    assert own.params == [list(values) for values in each.parameters.values()]
    cells = [each.cell(point) for point in each.points()]
    assert len(set(cells)) == len(cells)
    assert all(cell.release == "" for cell in cells)


def test_what_asv_finds_is_what_the_tables_say() -> None:
    """asv takes any function whose name begins so, imported ones too."""
    for suite in SUITES:
        functions = [name for name, each in vars(suite).items() if inspect.isfunction(each)]
        found = {name for name in functions if re.match("track_|time_|mem_|peakmem_", name)}
        assert found == {f"track_{each.metric.name}" for each in suite.TABLE}
        assert suite.setup_cache.timeout > 60, "asv's own limit, which kills a grid"


def test_counts_are_exact_and_what_asv_judges_gets_smaller() -> None:
    """asv takes every rise for a loss; the configuration leaves out what rises for the better."""
    for each in collections.TABLE:
        across = "wire" in each.parameters
        assert each.metric.kind == "exact"
        assert all(traits(each.cell(point)).is_exact != across for point in each.points())
    config = json.loads(
        re.sub("//.*", "", (Path(__file__).parents[3] / "asv.conf.json").read_text())
    )
    left_out = [regex for regex, first in config["regressions_first_commits"].items() if not first]
    for suite, each in ALL:
        name = f"{suite.__name__.rpartition('.')[2]}.track_{each.metric.name}"
        judged = not any(re.match(regex, name) for regex in left_out)
        assert not judged or each.metric.direction == "lower"
    assert "request_throughput" in [each.metric.name for each in serving.TABLE]


def test_a_gc_effect_has_its_partner_in_the_grid() -> None:
    effect = next(each for each in serving.TABLE if each.metric.name == "gc_effect")
    throughput = next(each for each in serving.TABLE if each.metric.name == "request_throughput")
    measured = {throughput.cell(point) for point in throughput.points()}
    for point in effect.points():
        cell = effect.cell(point)
        assert {cell, msgspec.structs.replace(cell, gc="disabled")} <= measured


LIGHT = """
import json, sys
from harness.suites import collections, serving
heavy = ("torch", "pandas", "scipy", "pyarrow", "rich")
print(json.dumps([name for name in heavy if name in sys.modules]))
"""


def test_a_suite_loads_light(fresh_interpreter: Callable[..., Any]) -> None:
    """asv imports it for every commit, and without a fork server for every figure."""
    assert fresh_interpreter(LIGHT) == []


AS_ASV = """
import importlib.util, json, sys
from importlib.machinery import PathFinder

class Only:
    def find_spec(self, name, path, target=None):
        if name == "suites":
            return PathFinder.find_spec(name, [sys.argv[1]])
        if name == "gcbench" and sys.path[0] == sys.argv[2]:  # only the commit is installed
            if found := PathFinder.find_spec(name, [sys.argv[2]]):
                return found
            raise ModuleNotFoundError(name=name)
        return None

sys.path[:] = [sys.argv[2], *(p for p in sys.path if p)]
sys.meta_path.insert(0, Only())
import suites.collections
import gcbench, harness
from harness.suites.commit import installed_tree
print(json.dumps([[harness.__file__, gcbench.__file__], str(installed_tree())]))
"""


LAYOUTS = {
    "a wheel": (
        "",
        ["gcbench", "gcbench/packages/engines", "gcbench/packages/harness"],
        "gcbench/packages",
    ),
    "an editable install": (
        "__path__ = [{tmp_path!r} + '/checkout/gcbench']",
        ["gcbench", "checkout/engines", "checkout/gcbench"],
        "checkout",
    ),
    "a wheel of before": ("", ["gcbench", "engines", "harness", "workloads"], ""),
    "a wheel from before gcbench": ("", ["engines", "harness", "workloads"], ""),
}


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
def test_this_checkout_comes_before_the_commits_harness(
    layout: str, tmp_path: Path, fresh_interpreter: Callable[..., Any]
) -> None:
    """The commit's wheel is first on the path when asv takes the suites; its engines are known."""
    source, packages, tree = LAYOUTS[layout]
    for package in packages:
        (tmp_path / package).mkdir(parents=True, exist_ok=True)
        found = (
            source.format(tmp_path=str(tmp_path)) if package == "gcbench" else "raise SystemExit"
        )
        (tmp_path / package / "__init__.py").write_text(found)
    root = Path(__file__).parents[3]
    files, said = fresh_interpreter(AS_ASV, str(root / "harness"), str(tmp_path))
    assert files == [str(root / name / "__init__.py") for name in ("harness", "gcbench")]
    assert Path(said) == tmp_path / tree


def test_nothing_installed_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment without a commit: asv shows the words and no traceback."""
    monkeypatch.setitem(sys.modules, "suites", SimpleNamespace(INSTALLED=None))
    cell = collections.TABLE[0].cell(collections.TABLE[0].points()[0])

    @one_sentence
    def setup_cache() -> Any:
        return measure_suite("none", [cell], modes=("counts",))

    with pytest.raises(SystemExit, match="has no gcbench installed, so there is no commit to meas"):
        setup_cache()

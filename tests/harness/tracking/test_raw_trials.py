"""Raw trials as frames: what was stored comes back, what is broken is named and left alone."""

import math

import msgspec
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from harness.axes import AXES, Cell
from harness.experiment.store import RunStore, TrialKey, trial_key
from harness.metrics import METRICS
from harness.tracking import history
from harness.trial.spec import TrialFailure, TrialResult

CELL = Cell(workload="small", device="null", representation="list_of_lists", batch_size=8)
OTHER = msgspec.structs.replace(CELL, gc="freeze", heap_objects=700_000)


def result(cell: Cell = CELL, **changes: object) -> TrialResult:
    fields = {
        "cell": cell,
        "mode": "timing",
        "seed": 3,
        "processes": [],
        "tokens_sha256": "",
        "finish_sha256": "",
        "interpreter": "3.11",
        "code_root": "",
        "code_commit": "abc+dirty",
        "wall_seconds": 1.0,
        "metrics": {"tpot_median": 0.01, "tpot_p99": None},
    }
    return TrialResult(**(fields | changes))


def save(root, name: str, outcomes: dict[TrialKey, TrialResult | TrialFailure]) -> RunStore:
    store = RunStore(root, name)
    store.create()
    for key, outcome in outcomes.items():
        store.save_trial(key, outcome)
    return store


@pytest.fixture
def runs(tmp_path):
    root = tmp_path / "results" / "runs"
    failure = TrialFailure(cell=OTHER, mode="timing", seed=4, kind="crashed", reason="it fell over")
    save(
        root,
        "one",
        {trial_key(1, 0, CELL, "timing"): result(), trial_key(1, 1, OTHER, "timing"): failure},
    )
    save(
        root,
        "two",
        {
            trial_key(2, 0, OTHER, "counts"): result(
                OTHER,
                mode="counts",
                metrics={"gc_collections_gen0": 7.0, "unheard_of": 1.0},
                invalid="it was late",
            )
        },
    )
    return root


def test_a_row_for_each_metric_of_each_trial(runs):
    found = history.load_history(runs)
    rows = {(row["experiment"], row["metric"]): row for row in found.trials.to_dict("records")}
    assert len(rows) == len(found.trials) == 4
    tpot = rows["one", "tpot_median"]
    metric = METRICS["tpot_median"]
    assert {axis: tpot[axis] for axis in [*AXES, "copy"]} == msgspec.structs.asdict(CELL)
    assert (tpot["round"], tpot["place"], tpot["mode"], tpot["seed"]) == (1, 0, "timing", 3)
    assert (tpot["value"], tpot["unit"], tpot["direction"], tpot["kind"]) == (
        0.01,
        metric.unit,
        metric.direction,
        metric.kind,
    )
    assert (tpot["code_commit"], tpot["invalid"]) == ("abc+dirty", "")
    assert math.isnan(rows["one", "tpot_p99"]["value"])
    assert rows["two", "gc_collections_gen0"]["invalid"] == "it was late"
    assert rows["two", "gc_collections_gen0"]["heap_objects"] == 700_000
    assert rows["two", "unheard_of"]["direction"] == "neither"
    (failure,) = found.failures.to_dict("records")
    assert (failure["kind"], failure["reason"], failure["gc"]) == (
        "crashed",
        "it fell over",
        "freeze",
    )
    assert found.problems == []


def test_one_experiment_many_and_the_folder_above(runs):
    assert len(history.load_history(runs / "one").trials) == 2
    assert len(history.load_history(runs).trials) == 4
    assert len(history.load_history(runs.parent).trials) == 4


@examples(50)
@given(
    st.dictionaries(
        st.text(min_size=1),
        st.none() | st.floats(allow_nan=False, allow_infinity=False),
        min_size=1,
        max_size=5,
    )
)
def test_a_metric_comes_back_as_it_was(tmp_path_factory, metrics):
    root = tmp_path_factory.getbasetemp() / "back"
    save(root, "one", {trial_key(1, 0, CELL, "timing"): result(metrics=metrics)})
    trials = history.load_history(root).trials
    found = dict(zip(trials["metric"], trials["value"], strict=True))
    assert found.keys() == metrics.keys()
    for name, value in metrics.items():
        assert found[name] == value or (value is None and math.isnan(found[name]))


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda text: text[: len(text) // 2], "cannot be read"),
        (lambda text: b"", "cannot be read"),
        (lambda text: text.replace(b"stored-trial/2", b"stored-trial/9"), "stored-trial/9"),
        (lambda text: text.replace(b"list_of_lists", b"flat_arrays"), "another trial"),
        (lambda text: text.replace(b'"tpot_median":0.01', b'"tpot_median":NaN'), "cannot be read"),
    ],
)
def test_a_broken_trial_is_named_and_stays_where_it_is(runs, damage, says):
    path = next((runs / "one" / "trials").glob("001-000-*.json"))
    path.write_bytes(damage(path.read_bytes()))
    broken = path.read_bytes()
    found = history.load_history(runs)
    (problem,) = found.problems
    assert says in problem
    assert path.name in problem
    assert "left out" in problem
    assert "\n" not in problem
    assert len(found.trials) == 2
    assert path.read_bytes() == broken
    assert sorted(each.suffix for each in path.parent.iterdir()) == [".json", ".json"]


def test_a_trial_under_another_name_is_named(runs):
    path = next((runs / "one" / "trials").glob("001-000-*.json"))
    path.rename(path.with_name(path.name.replace("001-000", "002-000")))
    found = history.load_history(runs)
    assert ["another trial than its name says" in problem for problem in found.problems] == [True]
    assert len(found.trials) == 2

"""Axes become cells: crossed, without contradictions, in groups with a baseline each."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small import CELL, schedule

from engines.protocol import EngineConfig
from engines.registry import ENGINES
from harness.axes import AXES, Cell, values, worth_mentioning
from harness.experiment.grid import Grid, baselines, cross, groups, takes, varying
from harness.trial.engine_config import engine_config

SCHEDULE = schedule([4, 9])
BUILT_IN = ("builtin", "vllm-hostpath", "vllm")

VALUES: dict[str, list[str | int]] = {
    "workload": ["one", "two"],
    "engine": ["builtin"],
    "device": ["null", "modelled"],
    "device_profile": ["opt-125m-h100", "llama-3-8b-h200"],
    "representation": ["list_of_lists", "flat_arrays", "tensor"],
    "delivery": ["per_request", "columnar"],
    "gc": ["default", "freeze", "disabled"],
    "batch_size": [1, 64, 1024],
    "output_processing": ["inline", "overlapped"],
    "worker": ["in-process", "process"],
    "wire": ["pickle"],
    "heap_objects": [0, 700_000],
    "python": ["", "/usr/bin/python3"],
}

grids = st.fixed_dictionaries(
    {
        axis: st.lists(st.sampled_from(values), min_size=1, max_size=2, unique=True)
        for axis, values in VALUES.items()
    }
)


def crossed(**axes: list[str | int]) -> Grid:
    """A grid over axes that are as the command line leaves them where nothing is said."""
    given = {"workload": ["one"], "device": ["null"]} | axes
    names = [str(name) for name in given["workload"]]
    models = dict.fromkeys(names, "opt-125m")
    return cross(given, dict.fromkeys(names, SCHEDULE), models)


def test_axes_cross_in_order_and_the_last_varies_fastest():
    grid = crossed(representation=["flat_arrays", "tensor"], gc=["default", "freeze"])
    assert [(cell.representation, cell.gc) for cell in grid.cells] == [
        ("flat_arrays", "default"),
        ("flat_arrays", "freeze"),
        ("tensor", "default"),
        ("tensor", "freeze"),
    ]
    assert varying(grid.cells) == ["representation", "gc"]
    assert grid.left_out == []


@given(grids)
def test_a_cell_or_a_reason_for_each_combination(axes):
    try:
        grid = crossed(**axes)
    except ValueError:
        assert axes["delivery"] == ["columnar"]
        assert axes["representation"] == ["list_of_lists"]
        return
    assert len(set(grid.cells)) == len(grid.cells)
    contradictory = "list_of_lists" in axes["representation"] and "columnar" in axes["delivery"]
    assert len(grid.left_out) == contradictory
    profiles = len(axes["device_profile"]) if "modelled" in axes["device"] else 0
    devices = profiles + ("null" in axes["device"])
    shapes = len(axes["representation"]) * len(axes["delivery"]) - contradictory
    other = [
        axis
        for axis in AXES
        if axis not in ("device", "device_profile", "representation", "delivery")
    ]
    sizes = [len(axes.get(axis, [""])) for axis in other]
    assert len(grid.cells) == devices * shapes * math.prod(sizes)


@given(grids)
def test_every_group_has_one_baseline_and_it_is_its_first_cell(axes):
    cells = crossed(**(axes | {"delivery": ["per_request"]})).cells
    of = groups(cells)
    assert sorted(set(of)) == list(range(max(of) + 1))
    assert [of.index(group) for group in sorted(set(of))] == baselines(cells, {})
    for cell, group in zip(cells, of, strict=True):
        first = cells[of.index(group)]
        same = all(
            getattr(cell, axis) == getattr(first, axis)
            for axis in ("workload", "device", "device_profile", "python")
        )
        assert same


@given(grids, st.data())
def test_a_baseline_asked_for_has_the_values_asked_for(axes, data):
    cells = crossed(**(axes | {"delivery": ["per_request"]})).cells
    axis = data.draw(st.sampled_from(["representation", "gc", "batch_size", "worker"]))
    value = str(getattr(data.draw(st.sampled_from(cells)), axis))
    chosen = baselines(cells, {axis: value})
    of = groups(cells)
    assert [of[index] for index in chosen] == sorted(set(of))
    assert {str(getattr(cells[index], axis)) for index in chosen} == {value}


def test_what_contradicts_itself_is_left_out_with_a_sentence():
    grid = crossed(
        representation=["list_of_lists", "flat_arrays"], delivery=["per_request", "columnar"]
    )
    assert len(grid.cells) == 3
    (why,) = grid.left_out
    assert why.startswith("columnar delivery of list_of_lists")
    with pytest.raises(ValueError, match="columnar delivery of list_of_lists"):
        crossed(delivery=["columnar"])


def test_a_schedule_is_not_replayed_where_requests_come_by_the_clock():
    of = schedule([4, 9], arrival_seconds=np.array([0.0, 1.0]))
    given = {"workload": ["one"], "device": ["null"], "scheduler": ["live", "replayed"]}
    grid = cross(given, {"one": of}, {"one": "opt-125m"})
    assert [cell.scheduler for cell in grid.cells] == ["live"]
    (why,) = grid.left_out
    assert "--axis scheduler=replayed: requests of one come by the clock" in why
    closed = schedule([4, 9], max_concurrency=1)
    assert len(cross(given, {"one": closed}, {"one": "opt-125m"}).cells) == 2


@pytest.mark.parametrize(
    ("axis", "value", "nearest"),
    [
        ("engine", "bultin", "builtin"),
        ("device", "modeled", "modelled"),
        ("representation", "flat_array", "flat_arrays"),
        ("delivery", "column", "columnar"),
        ("gc", "freze", "freeze"),
        ("output_processing", "inlined", "inline"),
        ("worker", "proces", "process"),
        ("wire", "pickel", "pickle"),
        ("scheduler", "replay", "replayed"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(axis, value, nearest):
    with pytest.raises(ValueError, match=value) as caught:
        crossed(**{axis: [value]})
    assert nearest in str(caught.value).replace(repr(value), "")
    assert "\n" not in str(caught.value)


def test_an_unknown_profile_is_refused_with_the_nearest():
    with pytest.raises(ValueError, match="opt-125m-h200"):
        crossed(device=["modelled"], device_profile=["opt-125m-h20"])


@pytest.mark.parametrize("size", [0, -1])
def test_a_batch_of_none_is_refused(size):
    with pytest.raises(ValueError, match=f"--batch-size {size}: must be 1 or more"):
        crossed(batch_size=[size])


def test_the_engines_own_defaults_are_those_of_the_table():
    (cell,) = crossed().cells
    config = engine_config(cell, SCHEDULE)
    # The lengths and the batch have no default there; the device is the test's.
    sized = {"max_num_seqs", "max_model_len", "max_num_batched_tokens", "device", "device_profile"}
    defaults = EngineConfig(max_num_seqs=1, max_model_len=1)
    for axis in AXES.values():
        if axis.decides and axis.decides not in sized:
            assert getattr(config, axis.decides) == getattr(defaults, axis.decides), axis.name


SOME_ENGINES = [
    name
    for name, axis in AXES.items()
    if axis.decides and not all(takes(ENGINES.load(each), axis) for each in BUILT_IN)
]


@pytest.mark.parametrize("name", SOME_ENGINES)
def test_an_axis_of_other_engines_is_refused_with_their_names(name):
    axis = AXES[name]
    other = next(each for each in BUILT_IN if not takes(ENGINES.load(each), axis))
    value = {"engine_core": "process", "enforce_eager": "on", "wire": "brief"}.get(name, "other")
    given = {
        "engine": [other],
        "device": ["null" if other != "vllm" else "cpu"],
        name: [2 if axis.kind is int else value],
    }
    with pytest.raises(
        ValueError,
        match=f"^{axis.said(given[name][0])}: is of engine .*; leave it out with {other}$",
    ):
        crossed(**given)


def test_a_wire_stands_in_cells_with_a_worker_process_alone():
    grid = crossed(worker=["in-process", "process"], wire=["full", "columns"])
    found = [(cell.worker, cell.wire) for cell in grid.cells]
    assert found == [("in-process", "pickle"), ("process", "full"), ("process", "columns")]
    assert grid.left_out == []
    with pytest.raises(ValueError, match=r"^--wire full,columns: nothing crosses with --worker "):
        crossed(wire=["full", "columns"])
    with pytest.raises(ValueError, match=r"^--axis wire-spin=0.01: nothing crosses with --worker "):
        crossed(wire_spin=["0.01"])


@pytest.mark.parametrize("name", ["num_scheduler_steps", "batch_size", "heap_objects"])
def test_a_number_beyond_all_measure_is_refused(name):
    with pytest.raises(ValueError, match=f"{AXES[name].said(10**20)}: must be .* or less$"):
        crossed(**{name: [10**20]})


def test_a_negative_heap_is_refused():
    with pytest.raises(ValueError, match="--heap-objects -1: must be 0 or more"):
        crossed(heap_objects=[0, -1])


def test_a_baseline_that_is_not_there_is_refused():
    cells = crossed(gc=["default", "freeze"]).cells
    with pytest.raises(ValueError, match="--baseline gc=disabled: no cell"):
        baselines(cells, {"gc": "disabled"})
    with pytest.raises(ValueError, match="no axis 'representaton'; did you mean representation"):
        baselines(cells, {"representaton": "flat_arrays"})


def test_a_profile_goes_with_the_workload_s_model():
    (cell,) = crossed(device=["modelled"]).cells
    assert cell.device_profile == "opt-125m-h200-measured"
    (cell,) = crossed(device=["null"], device_profile=["opt-125m-h100"]).cells
    assert cell.device_profile == ""


def test_the_engine_has_room_for_a_whole_batch_in_a_step():
    ragged = schedule([5], num_accepted=[1, 4, 2])
    config = engine_config(Cell(workload="one", batch_size=4096), ragged)
    assert config.max_num_batched_tokens == 4 * 4096
    assert config.num_accepted == (1, 4, 2)
    assert engine_config(CELL, ragged).max_num_batched_tokens == 8192
    assert (config.max_model_len, config.seed) == (8, ragged.token_seed)


def test_what_a_release_decides_itself_is_not_mentioned():
    lean = worth_mentioning(values(Cell(engine="vllm-hostpath", prefix_caching="on")))
    assert (lean["engine_core"], lean["prefix_caching"]) == ("in-process", "on")
    shipped = worth_mentioning(values(Cell(engine="vllm-hostpath", setup="shipped")))
    assert shipped["setup"] == "shipped"
    assert not {"output_processing", "prefix_caching", "log_stats"} & shipped.keys()

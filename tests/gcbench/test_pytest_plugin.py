"""The pytest plug-in: what it counts is what was made, and what goes over fails."""

import dis
import gc
import re
import sys
from importlib.metadata import entry_points
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small import CELL, engine, schedule

from engines.builtin.engine import Engine
from engines.protocol import SamplingParams
from gcbench.budget import BudgetExceeded, Limits, assert_tracked_per_request, check_budget
from gcbench.call_cost import UncountableCall, measure_call

pytestmark = pytest.mark.usefixtures("frozen_heap")

NUM_REQUESTS = 64


def _generator():
    yield 1
    yield 2


class WithDict:
    def __init__(self) -> None:
        self.token_ids = [1]


def keep(make, times: int = 1):
    """A call whose result holds what it made."""
    return lambda: [make(i) for i in range(NUM_REQUESTS * times)]


def drop(make, times: int = 1):
    """A call that has it all at once and then lets go of it."""

    def step() -> None:
        made = [make(i) for i in range(NUM_REQUESTS * times)]
        del made

    return step


@pytest.mark.parametrize(
    ("make", "each"),
    [
        (lambda i: {"token_ids": [i]}, 2),
        (lambda i: [i], 1),
        (lambda i: (i, [][:]), 2),
        (lambda i: {i}, 1),
        (lambda i: i + 1000, 0),
        (np.int32, 0),
        (str, 0),
        (lambda i: _generator(), 1),
        (lambda i: WithDict(), 2),  # its attributes are in no dictionary until one asks
    ],
    ids=["dict", "list", "tuple", "set", "int", "int32", "str", "generator", "object"],
)
def test_survivors_are_the_tracked_objects_that_the_result_holds(make, each):
    cost = measure_call(keep(make), NUM_REQUESTS, traced=False)
    assert cost.survivors == each * NUM_REQUESTS + 1, "and the list itself"
    assert cost.per_request() == {"survivors": each + 1 / NUM_REQUESTS}
    assert sum(cost.survivors_by_type.values()) == cost.survivors


@given(times=st.integers(0, 5))
def test_so_many_dictionaries_per_request_are_exactly_so_many(times):
    kept = []
    cost = measure_call(
        lambda: kept.extend([{"token_ids": kept} for _ in range(NUM_REQUESTS * times)]),
        NUM_REQUESTS,
        traced=False,
    )
    assert cost.per_request() == {"survivors": times}
    assert cost.survivors_by_type == ({"dict": NUM_REQUESTS * times} if times else {})


def test_what_a_step_puts_in_place_of_the_last_ones_is_no_survivor():
    kept: list[object] = [None] * NUM_REQUESTS

    def step() -> None:
        for i in range(NUM_REQUESTS):
            kept[i] = {i}

    assert measure_call(step, NUM_REQUESTS, traced=False).survivors == 0


def test_cyclic_garbage_survives_until_the_collector_comes():
    def step() -> None:
        for _ in range(NUM_REQUESTS):
            mine: list[object] = []
            mine.append(mine)

    cost = measure_call(step, NUM_REQUESTS)
    assert cost.survivors_by_type == {"list": NUM_REQUESTS}


def test_survivors_are_counted_through_gc_freeze():
    kept: list[object] = []

    def step() -> None:
        kept.extend([{i} for i in range(NUM_REQUESTS)])
        gc.freeze()

    try:
        assert measure_call(step, NUM_REQUESTS, traced=False).survivors == NUM_REQUESTS
    finally:
        gc.unfreeze()


@pytest.mark.parametrize("make", [set, list, dict])
@given(times=st.integers(1, 4))
def test_peak_and_allocations_grow_by_what_is_made(make, times):
    few, many = (measure_call(drop(lambda i: make(), t), NUM_REQUESTS) for t in (1, 1 + times))
    assert few.survivors == many.survivors == 0
    assert many.peak - few.peak == times * NUM_REQUESTS
    assert many.allocations - few.allocations == times * NUM_REQUESTS


def test_a_suspended_generator_is_one_object_and_not_the_frame_of_tracing_too():
    def started(_: int) -> object:
        made = _generator()
        next(made)
        return made

    few, many = (measure_call(drop(started, t), NUM_REQUESTS) for t in (1, 3))
    assert many.peak - few.peak == 2 * NUM_REQUESTS


def test_calls_and_their_frames_cost_bytecodes_and_no_objects():
    def nothing(*_: int) -> None:
        return

    def step() -> None:
        for _ in range(NUM_REQUESTS):
            nothing()

    cost = measure_call(step, NUM_REQUESTS)
    assert (cost.survivors, cost.peak, cost.allocations) == (0, 0, 0)
    assert cost.bytecodes > 5 * NUM_REQUESTS


def test_what_dies_at_once_is_allocated_each_time_and_never_more_than_one():
    def churn(times: int):
        def step() -> None:
            for _ in range(times):
                made = set()
                del made

        return step

    few, many = (measure_call(churn(times), NUM_REQUESTS) for times in (100, 300))
    assert many.allocations - few.allocations == 200
    assert many.peak == few.peak <= 2


def test_older_objects_that_die_in_the_call_do_not_hide_new_ones():
    old: list[object] = []

    def step() -> list[object]:
        old.clear()
        made = [set() for _ in range(NUM_REQUESTS)]
        old.extend(set() for _ in range(5000))
        return made

    cost = measure_call(step, NUM_REQUESTS)
    assert cost.survivors == NUM_REQUESTS + 1
    assert cost.allocations >= 5000 + NUM_REQUESTS


def test_bytecodes_are_those_of_the_loop():
    def spin(turns: int):
        def step() -> None:
            for _ in range(turns):
                pass

        return step

    one, two, many = (measure_call(spin(n), 1).bytecodes for n in (1, 2, 1002))
    names = [each.opname for each in dis.get_instructions(spin(1))]
    end = next(i for i, name in enumerate(names) if name.startswith("JUMP_BACKWARD"))
    in_loop = end + 1 - names.index("FOR_ITER")
    assert two - one == in_loop
    assert many - two == 1000 * in_loop


def test_figures_repeat_to_the_digit(fresh_interpreter):
    script = """
import json
from dataclasses import asdict
from gcbench.call_cost import measure_call
def step():
    return [{"token_ids": [i], "more": (set(), str(i))} for i in range(100)]
first, second = (asdict(measure_call(step, 100)) for _ in range(2))
assert first == second, (first, second)
print(json.dumps(first))
"""
    assert fresh_interpreter(script) == fresh_interpreter(script)


@pytest.mark.slow
def test_an_engine_step_keeps_to_a_budget_that_lists_go_over(gc_budget):
    def decoding(representation: str, delivery: str) -> Engine:
        of = schedule([50] * NUM_REQUESTS)
        cell = msgspec.structs.replace(
            CELL, representation=representation, delivery=delivery, batch_size=NUM_REQUESTS
        )
        served = engine(of, cell)
        for i in range(NUM_REQUESTS):
            served.add_request(i, of.prompt_token_ids(i), SamplingParams(50))
        for _ in range(3):
            served.step()
        return served

    columns = decoding("flat_arrays", "columnar").step
    gc_budget(columns, NUM_REQUESTS, survivors=0.1, peak=0.6)
    with pytest.raises(BudgetExceeded, match="objects alive at once per request"):
        gc_budget(decoding("list_of_lists", "per_request").step, NUM_REQUESTS, peak=0.5)


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("outcome", ["within", "over", "raises", "turns it on"])
def test_the_collector_is_put_back(enabled, outcome):
    def step() -> object:
        assert not gc.isenabled()
        if outcome == "raises":
            raise KeyError("of the step")
        if outcome == "turns it on":
            gc.enable()
            gc.disable()
        return set()

    expected = {"over": BudgetExceeded, "raises": KeyError}.get(outcome)
    callbacks, was_on = list(gc.callbacks), gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        if expected:
            with pytest.raises(expected):
                assert_tracked_per_request(step, 1, at_most=0)
        else:
            assert_tracked_per_request(step, 1, at_most=1)
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if was_on else gc.disable)()
    assert gc.callbacks == callbacks
    assert sys.gettrace() is None


def tracer(frame, event, arg):
    return None


def test_under_another_trace_function_survivors_are_counted_and_the_rest_refused():
    sys.settrace(tracer)
    try:
        with pytest.raises(UncountableCall, match=r"tracer .* traces this thread"):
            measure_call(keep(lambda i: [i]), NUM_REQUESTS)
        cost = measure_call(keep(lambda i: [i]), NUM_REQUESTS, traced=False)
        assert sys.gettrace() is tracer
    finally:
        sys.settrace(None)
    assert cost.survivors == NUM_REQUESTS + 1


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring came with 3.12")
def test_another_tool_that_monitors_is_refused():
    sys.monitoring.use_tool_id(sys.monitoring.COVERAGE_ID, "some coverage")
    try:
        with pytest.raises(UncountableCall, match="'some coverage' traces this thread"):
            measure_call(list, 1)
    finally:
        sys.monitoring.free_tool_id(sys.monitoring.COVERAGE_ID)


def sets_a_tracer() -> list[set[int]]:
    sys.settrace(tracer)
    return [made_under_it() for _ in range(2)]


def made_under_it() -> set[int]:
    return {1}


@pytest.mark.skipif(sys.version_info < (3, 12), reason="bytecodes are then counted by a tracer")
@pytest.mark.parametrize("watch", [sys.settrace, sys.setprofile])
def test_a_call_that_traces_for_a_while_cannot_be_counted(watch):
    def step() -> list[set[int]]:
        watch(tracer)
        made = [made_under_it() for _ in range(2)]
        watch(None)
        return made

    with pytest.raises(UncountableCall, match="set a trace or profile function of its own"):
        measure_call(step, 1)


def test_a_call_that_collects_or_traces_by_itself_cannot_be_counted():
    with pytest.raises(UncountableCall, match="The collector ran within"):
        measure_call(lambda: gc.collect(0), 1)
    try:
        with pytest.raises(UncountableCall, match="set a trace or profile function of its own"):
            measure_call(sets_a_tracer, 1)
    finally:
        sys.settrace(None)
    assert measure_call(gc.collect, 1, traced=False).survivors == 0


def test_survivors_can_be_counted_within_a_count_and_the_rest_not():
    def inner() -> None:
        assert_tracked_per_request(set, 1, at_most=1)

    assert measure_call(inner, 1, traced=False).survivors == 0
    with pytest.raises(UncountableCall, match="traces this thread"):
        measure_call(lambda: measure_call(list, 1), 1)
    assert gc.isenabled()


async def coroutine_step() -> None:
    return


@pytest.mark.parametrize(
    ("call", "num_requests", "error", "said"),
    [
        (list, 0, ValueError, "num_requests is 0; a step has at least one request"),
        (list, 1.5, TypeError, "'float' object cannot be interpreted as an integer"),
        ([1], 1, TypeError, r"\[1\] cannot be called; pass the function that takes the step"),
        (coroutine_step, 1, TypeError, "coroutine_step only makes a coroutine"),
        (lambda: (i for i in range(9)), 1, TypeError, "only makes a generator"),
    ],
)
def test_what_cannot_be_measured_is_refused(call, num_requests, error, said):
    with pytest.raises(error, match=said):
        measure_call(call, num_requests)


@pytest.mark.parametrize("limit", [-1, float("nan"), float("inf")])
def test_a_limit_that_nothing_can_be_over_or_under_is_refused(limit, gc_budget):
    with pytest.raises(ValueError, match=r"bytecodes is -?\w+; a budget is a finite number"):
        gc_budget(list, 1, bytecodes=limit)


def test_no_limit_is_refused(gc_budget):
    with pytest.raises(ValueError, match="No budget is given, so nothing could fail"):
        gc_budget(list, 1)
    untraced = measure_call(list, 1, traced=False)
    with pytest.raises(ValueError, match="list was not traced, so there is no figure for peak"):
        check_budget(untraced, Limits(peak=1))


def test_a_quotient_that_is_the_budget_is_within_it():
    kept: list[object] = []
    for part in (29, 57, 58):  # of 100: products that floating point gets wrong
        step = lambda: kept.extend([[] for _ in range(part)])  # noqa: B023, E731
        assert_tracked_per_request(step, 100, at_most=part / 100)
        with pytest.raises(BudgetExceeded):
            assert_tracked_per_request(step, 100, at_most=(part - 1) / 100)


def test_the_message_says_what_of_how_much_and_what_to_do():
    step = keep(lambda i: {"token_ids": [i]})
    step.__qualname__ = "Scheduler.update_from_output"
    with pytest.raises(BudgetExceeded) as refused:
        assert_tracked_per_request(step, NUM_REQUESTS, at_most=0.25)
    assert str(refused.value) == (
        "Scheduler.update_from_output: 2.01562 tracked objects left alive per request, budget "
        "0.25 (129 in a call of 64, 65 list, 64 dict); keep fewer objects or raise the budget."
    )


def test_every_limit_that_is_exceeded_is_named(gc_budget):
    with pytest.raises(BudgetExceeded) as refused:
        gc_budget(keep(lambda i: [i]), NUM_REQUESTS, survivors=2, peak=0.5, bytecodes=0)
    said = str(refused.value)
    assert "objects alive at once per request, budget 0.5" in said
    assert "bytecodes per request, budget 0 " in said
    assert "left alive" not in said


TESTS = """
def kept():
    return [[] for _ in range(100)]

def raises():
    raise KeyError("of the step")

def test_within(gc_budget):
    cost = gc_budget(kept, 100, survivors=1.5, peak=2)
    assert cost.survivors == 101

def test_over(gc_budget):
    gc_budget(kept, 100, survivors=1)

def test_raises(gc_budget):
    gc_budget(raises, 100, survivors=1)

def test_no_budget(gc_budget):
    gc_budget(kept, 100)
"""


def test_pytest_finds_the_plug_in_and_its_verdicts(pytester):
    assert "gcbench.pytest_plugin" in [e.value for e in entry_points(group="pytest11")]
    pytester.makepyfile(TESTS)
    done = pytester.runpytest_subprocess("--junit-xml=report.xml")
    done.assert_outcomes(passed=1, failed=3)
    done.stdout.fnmatch_lines(
        [
            "E*BudgetExceeded: kept: 1.01 tracked objects left alive per request, budget 1 *",
            "E*KeyError: 'of the step'",
        ]
    )
    done.stdout.no_fnmatch_line("*call_cost.py*")
    done.stdout.no_fnmatch_line("*pytest_plugin.py*")
    report = ElementTree.parse(pytester.path / "report.xml")
    recorded = {p.get("name"): p.get("value") for p in report.iter("property")}
    assert recorded["survivors_per_request"] == "1.01"
    assert float(recorded["peak_per_request"]) >= 1


def test_it_can_be_left_out(pytester):
    pytester.makepyfile("def test_it(gc_budget): pass")
    done = pytester.runpytest_subprocess("-p", "no:gcbench")
    done.assert_outcomes(errors=1)


def test_it_loads_nothing_heavy(fresh_interpreter):
    script = """
import json, sys
import pytest
before = set(sys.modules)
import gcbench.pytest_plugin
print(json.dumps(sorted(set(sys.modules) - before)))
"""
    loaded = fresh_interpreter(script)
    assert [name for name in loaded if not name.startswith("gcbench")] == []


def make_row(kept: list[list[object]]) -> None:
    kept.append([object()])


def make_rows() -> None:
    kept: list[list[object]] = []
    for _ in range(50):
        make_row(kept)
    [None for _ in range(3)]


def test_the_functions_behind_a_budget_are_named_and_add_up():
    cost = measure_call(make_rows, 50)
    for name in ("bytecodes", "allocations"):
        assert sum(getattr(each, name) for each in cost.functions) == getattr(cost, name)
    by_name = {each.name: each for each in cost.functions}
    assert by_name["make_row"].calls == 50
    assert by_name["make_row"].allocations == 50
    line = make_row.__code__.co_firstlineno + 1
    for limits, whole in ((Limits(allocations=0.5), "Of them"), (Limits(peak=0.5), "In all")):
        with pytest.raises(BudgetExceeded) as refused:
            check_budget(cost, limits)
        named = rf"{whole} 50 made in make_row \(\S*{Path(__file__).name}:{line}\)\.$"
        assert re.search(rf"raise the budget\. {named}", str(refused.value))
    with pytest.raises(BudgetExceeded, match=r"Of them \d+ in make_row \(\S+\), \d+ in make_rows"):
        check_budget(cost, Limits(bytecodes=1))
    assert measure_call(make_rows, 50, traced=False).functions == []

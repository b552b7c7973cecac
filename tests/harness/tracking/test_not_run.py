"""Of code that no cell has executed a gate says that, and no more."""

from collections.abc import Sequence

import msgspec
import pytest
from gate_results import cell, exact, result
from small import CELL, answer

from harness.cli.status import gate_status
from harness.experiment.outcomes import Trials
from harness.experiment.store import trial_key
from harness.explain.changed_functions import ChangedFunction, Statement
from harness.render.markdown import report_markdown
from harness.report.gate import describe_gate
from harness.report.gate_title import title
from harness.tracking.gate.exact_counts import overall
from harness.tracking.gate.not_run import functions_run, not_run
from harness.tracking.gate.plan import exact_plan, pair
from harness.trial.output_hashes import RanFunction
from harness.trial.spec import Mode, Trial
from harness.trial.step_costs import RequestFunctionCost, StepCosts

LOOP = ChangedFunction(file="engines/loop.py", name="Loop.run", line=51)
STEP = ChangedFunction(file="engines/engine.py", name="Engine.step", line=7)
COSTS = StepCosts(
    num_steps=0,
    num_rows=0,
    functions=[],
    calls=[],
    per_request={"prompt": [RequestFunctionCost(LOOP.file, LOOP.name, LOOP.line, 3.0, 0.0)]},
)
RAN = [RanFunction("engines/engine.py", "Engine.step")]


def trials(
    ran: list[RanFunction], *modes: Mode, beside: Sequence[RanFunction] = ()
) -> tuple[Trials, list]:
    """Those of one pair, whose trials in mode ``outputs`` have noted these functions.

    In ``modes`` `LOOP` was counted, and ``beside`` ran beside the steps.
    """
    each = pair("x", CELL, "base", "head", 0)
    plan = exact_plan("gate", [each], {CELL.workload: "hash"}, seed=0)
    outcomes = {}
    for place, of in enumerate(plan.cells):
        counted = msgspec.structs.replace(of, gc="disabled")
        asked = Trial(cell=counted, schedule_path="", schedule_sha256="", mode="outputs")
        made = msgspec.structs.replace(answer(asked, {}), ran=ran)
        outcomes[trial_key(0, place, counted, "outputs")] = made
        for mode in modes:
            made = msgspec.structs.replace(answer(asked, {}), mode=mode, costs=COSTS, ran=[*beside])
            outcomes[trial_key(0, place, counted, mode)] = made
    return Trials(plan, outcomes), [each.head]


def test_a_statement_that_runs_as_requests_are_aborted_has_run():
    """Serving them all has run the function, and not that line."""
    changed = msgspec.structs.replace(STEP, line=12, statements=(Statement(12, 12),))
    served = [RanFunction(STEP.file, STEP.name, (8, 9))]
    aborted = [RanFunction(STEP.file, STEP.name, (8, 12))]
    assert not_run([changed], functions_run(*trials(served, "opcodes"))) == [changed]
    assert not_run([changed], functions_run(*trials(served, "opcodes", beside=aborted))) == []


def test_a_changed_function_that_no_cell_executed_is_named_and_others_are_not():
    ran = functions_run(*trials(RAN))
    assert not_run([LOOP, STEP], ran) == [LOOP]
    module = ChangedFunction(file="engines/engine.py", name="<module>", line=1)
    assert not_run([module], ran) == [], "it was imported"
    engine, loop = (
        msgspec.structs.replace(STEP, name=f"{name}.__init__") for name in ["Engine", "Loop"]
    )
    assert not_run([engine, loop], ran) == [loop], "an engine that steps has been made"


@pytest.mark.parametrize("mode", ["opcodes", "grid"])
def test_what_only_a_counting_trial_ran_has_run(mode):
    counted, cells = trials(RAN, mode)
    assert not_run([LOOP, STEP], functions_run(counted, cells)) == []


def test_where_a_cell_cannot_tell_nothing_is_said_not_to_have_run():
    assert not_run([LOOP, STEP], functions_run(*trials([]))) == []


def test_same_is_then_same_where_it_ran():
    same = [cell("list_of_lists · per_request", "same", exact())]
    found = result(same, not_run=[LOOP])
    report = describe_gate(found)
    assert report.answer.startswith("= SAME where it ran, by exact counts alone ")
    assert (
        dict(report.short)["not run"]
        == "no cell executed this changed code while it served requests: Loop.run "
        "(engines/loop.py:51)."
    )
    assert "Loop.run" in report_markdown(report)
    way = msgspec.structs.replace(LOOP, way="--worker process")
    words = dict(describe_gate(result(same, not_run=[way])).short)["not run"]
    assert words.endswith("Loop.run (engines/loop.py:51; --worker process runs it).")
    assert title(result(same)).startswith("= SAME, by exact counts alone  ")


@pytest.mark.parametrize("verdict", ["same", "better", "inconclusive", "accepted"])
def test_what_no_cell_has_run_is_not_covered_unless_that_is_allowed(verdict):
    cells = [cell("list_of_lists · per_request", verdict, exact())]
    assert overall(cells) == verdict
    assert overall(cells, is_covered=False) == "not covered"
    found = msgspec.structs.replace(result(cells, not_run=[LOOP]), verdict="not covered")
    assert gate_status(found) == 3
    assert title(found).startswith("? NOT COVERED, by exact counts alone  ")


@pytest.mark.parametrize("verdict", ["worse", "trade", "incomplete"])
def test_what_is_known_to_be_lost_or_missing_comes_first(verdict):
    cells = [cell("list_of_lists · per_request", verdict, exact())]
    assert overall(cells, is_covered=False) == verdict


def test_of_a_function_that_ran_the_statements_that_did_not_are_left():
    changed = msgspec.structs.replace(STEP, statements=(Statement(9, 9), Statement(12, 14)))
    file, name = STEP.file, STEP.name

    def left(*ran: RanFunction) -> list[tuple[int, int]]:
        return [tuple(each) for one in not_run([changed], ran) for each in one.statements]

    assert left(RanFunction(file, name, (7, 8, 13))) == [(9, 9)]
    assert not_run([changed], [RanFunction(file, name, (8, 9))])[0].line == 12
    assert left(RanFunction(file, name, (9,)), RanFunction(file, name, (14,))) == []
    assert (
        left(RanFunction(file, name, (9,)), RanFunction(file, f"{name}.<locals>.<genexpr>", (12,)))
        == []
    )
    assert left(RanFunction(file, name)) == [], "nobody has looked at lines"
    assert left(RanFunction("engines/loop.py", name, (9, 12))) == [(9, 9), (12, 14)]

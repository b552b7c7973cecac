"""Base, head and change of a row are figures of one estimate: they agree, whatever was measured."""

import msgspec
import pytest
from examples import examples
from gate_results import cell as made_cell
from gate_results import result as made_result
from hypothesis import given
from hypothesis import strategies as st
from small import CELL, answer

from harness.experiment.plan import timing_round
from harness.experiment.store import trial_key
from harness.report.gate_tables import gate_tables
from harness.tracking.gate.plan import TURN_STEPS, pair, timing_plan
from harness.tracking.gate.result import TimingChange
from harness.tracking.gate.timing import compare_timings
from harness.trial.spec import Trial

SECONDS = st.floats(2e-4, 5e-3)


def timed(rounds, more_steps: int) -> TimingChange:
    """What rounds of two slices say, of base and of head; head may take a slice more."""
    each = pair("cell", msgspec.structs.replace(CELL), "base", "head", 0)
    plan = timing_plan(
        "gate",
        [each],
        schedules={CELL.workload: "hash"},
        seed=0,
        rounds=len(rounds),
        tolerance=0.03,
    )
    outcomes = {}
    for number, (base, head) in enumerate(rounds, start=1):
        for turn in timing_round(plan, number):
            of = base if turn.cell.release == "base" else head and head * (1 + more_steps)
            if of is None:
                continue
            steps = [round(1e9 * seconds) for seconds in of for _ in range(TURN_STEPS)]
            mean = sum(steps) / len(steps) / 1e9
            metrics = {"host_time_per_step": mean, "num_steps": float(len(steps))}
            asked = Trial(cell=turn.cell, schedule_path="", schedule_sha256="", seed=turn.seed)
            result = msgspec.structs.replace(answer(asked, metrics), step_host_ns=steps)
            outcomes[trial_key(number, turn.place, turn.cell, "timing")] = result
    return compare_timings([each], plan, outcomes).by_pair[each]


@examples(30)
@given(
    st.lists(st.tuples(*(st.lists(SECONDS, min_size=2, max_size=2),) * 2), min_size=7, max_size=7),
    st.integers(0, 1),
)
def test_head_is_base_and_the_change(rounds, more_steps):
    found = timed(rounds, more_steps)
    assert found.after == pytest.approx(found.before * found.steady.ratio)
    assert found.mean_after == pytest.approx(found.mean_before * found.mean.ratio)


def test_rounds_that_one_side_lacks_move_no_figure():
    """Head has no result of the slow rounds: medians over each one's own would be 2 and 1.08 ms."""
    fast = [([1e-3 * base] * 2, [1e-3 * base * 1.05] * 2) for base in (1.0, 1.01, 1.02, 1.03)]
    fast += [([1e-3 * base] * 2, [1e-3 * base * 1.05] * 2) for base in (1.04, 1.05, 1.06)]
    found = timed([*fast, *[([2e-3] * 2, None)] * 8], 0)
    assert found.steady.verdict == "worse"
    table = gate_tables(made_result([made_cell("cell", "worse", (), found)]))[-1]
    usual, mean, _ = table.groups[0]
    assert usual[1:4] == mean[1:4] == ("1.03 ms", "1.08 ms", "+5.0 %")
    assert "head is base with the change" in table.caption

"""Where the gate's verdict tips: families, causes, exact losses beside times, what is missing."""

from collections.abc import Sequence

import msgspec
import numpy as np
import pytest
from gate_results import cell as made_cell
from gate_results import timing
from small import CELL, answer, process
from test_kept_counts import counted as counted_tree
from test_kept_counts import tree  # noqa: F401  # a fixture

from harness.experiment.outcomes import Trials
from harness.experiment.plan import Plan, timing_round
from harness.experiment.result import Comparison
from harness.experiment.store import trial_key
from harness.statistics.paired_ratio import holm, paired_ratio
from harness.tracking.gate.exact_counts import judge_pairs, overall
from harness.tracking.gate.kept_counts import KeptCounts
from harness.tracking.gate.plan import TURN_STEPS, GatePair, exact_plan, pair, timing_plan
from harness.tracking.gate.result import GateCell, TimingChange
from harness.tracking.gate.timing import Timings, TrialOutcomes, cause_of, compare_timings, slower
from harness.trial.spec import Trial
from harness.trial.step_costs import change_of

SCHEDULES = {CELL.workload: "hash"}
EACH = pair("cell", CELL, "base", "head", 0)


def rounds(
    pairs: Sequence[GatePair],
    rises: Sequence[float],
    stall: float = 0.0,
    risen: Sequence[str] = ("steps",),
) -> tuple[Plan, TrialOutcomes]:
    """Rounds of two slices in which head takes so much longer for what has ``risen``, and stalls
    once in each.
    """
    plan = timing_plan(
        "gate", pairs, schedules=SCHEDULES, seed=0, rounds=len(rises), tolerance=0.03
    )
    outcomes = {}
    for number, rise in enumerate(rises, start=1):
        for turn in timing_round(plan, number):
            is_head = turn.cell.release == "head"
            longer = 1 + rise * is_head
            steps = np.full(2 * TURN_STEPS, 10**6 * (longer if "steps" in risen else 1))
            steps[3] += 1e9 * stall * is_head
            metrics = {"host_time_per_step": steps.mean() / 1e9, "num_steps": float(len(steps))}
            if "requests" in risen:
                metrics["cpu_per_request"] = 0.001 * longer
            asked = Trial(cell=turn.cell, schedule_path="", schedule_sha256="", seed=turn.seed)
            found = answer(asked, metrics)
            key = trial_key(number, turn.place, turn.cell, "timing")
            outcomes[key] = msgspec.structs.replace(
                found, step_host_ns=steps.round().astype(int).tolist()
            )
    return plan, outcomes


def timed(pairs: Sequence[GatePair], rises: Sequence[float], stall: float = 0.0) -> Timings:
    return compare_timings(pairs, *rounds(pairs, rises, stall))


RISES = (0.01, 0.03, 0.02, 0.015, 0.025, 0.012, 0.028)


@pytest.mark.parametrize("count", [1, 2])
def test_usual_steps_means_and_stalls_of_all_pairs_are_one_family(count):
    cells = [msgspec.structs.replace(CELL, batch_size=8 * (1 + n)) for n in range(count)]
    pairs = [pair(str(n), each, "base", "head", n) for n, each in enumerate(cells)]
    found = timed(pairs, RISES)
    of_one = paired_ratio(np.ones(7), 1 + np.array(RISES), 3 * count)
    for change in found.by_pair.values():
        assert change.steady.mde == pytest.approx(of_one.mde, rel=1e-4)
        assert change.mean.mde == pytest.approx(of_one.mde, rel=1e-4)
        # The stalls' p-values are 1.
        p_values = [of_one.p] * (2 * count) + [1.0] * count
        assert change.steady.p_adjusted == pytest.approx(holm(p_values)[0], rel=0.01)


@pytest.mark.parametrize(("count", "is_timed"), [(2, False), (3, True)])
def test_a_pair_is_timed_by_three_rounds(count, is_timed):
    assert (EACH in timed([EACH], RISES[:count]).by_pair) == is_timed


@pytest.mark.parametrize("what", ["steps", "requests"])
@pytest.mark.parametrize(
    ("rises", "said"),
    [
        ((0.1001, 0.3, 0.3, 0.3), "HEAD's {} took 1.10 times as long"),
        ((0.0999, 0.3, 0.3, 0.3), ""),
        ((0.3, 0.3, 0.3), "fewer than 4 rounds"),
        ((0.0999,), ""),
        ((), "fewer than 4 rounds"),
    ],
)
def test_a_tenth_more_in_each_of_four_rounds_is_more_than_counts_tell(rises, said, what):
    found = slower([EACH], *rounds([EACH], rises, risen=[what]))
    assert list(found.by_id) == [EACH.id] * bool(said)
    assert found.by_id.get(EACH.id, "").startswith(said.format(what))
    assert len(found.comparisons) == said.startswith("fewer"), "more rounds can tell"


@pytest.mark.parametrize(
    ("rises", "change"),
    [
        ((7, 7, 7), 7),
        ((0, 0, 0), 0),
        ((1000, 801, 900), 801),
        ((-1000, -801, -900), -801),
        ((1000, 799, 900), None),
        ((5, -5, 5), None),
        ((7, 7, 0), None),
    ],
)
def test_a_change_is_the_least_of_windows_that_are_within_a_fifth_of_one_another(rises, change):
    before = [2000] * 3
    assert change_of(before, [2000 + rise for rise in rises]) == change


def test_a_count_below_nothing_is_no_change():
    assert change_of([5, 5, 5], [-1, -1, -1]) is None


def test_what_is_undecided_asks_for_more_rounds():
    """However narrow the usual step's interval is."""
    found = timed([EACH], RISES, stall=0.004)
    verdicts = [found.by_pair[EACH].mean.verdict, found.by_pair[EACH].stalls.verdict]
    assert len(found.comparisons) == 1 + verdicts.count("inconclusive") > 1


def compared(change: float) -> Comparison:
    """One that has changed by so much, or not at all."""
    verdict = "same" if not change else "worse" if change > 0 else "better"
    return Comparison(
        metric="host_time_per_step",
        baseline="base",
        candidate="head",
        ratio=1 + change,
        ci95=(1 + change, 1 + change),
        verdict=verdict,
        p_adjusted=0.0,
        mde=0.01,
        rounds=7,
    )


@pytest.mark.parametrize(
    ("code", "collector", "cause"),
    [
        (0.1, 0.0, "code"),
        (0.0, 0.1, "collector"),
        (0.1, 0.1, "both"),
        (0.2, -0.1, "both"),
        (0.0, 0.0, "untold"),
        (-0.1, 0.0, "untold"),
        (0.0, -0.1, "untold"),
    ],
)
def test_a_cause_has_changed_the_same_way(code, collector, cause):
    assert cause_of(compared(0.1), compared(code), compared(collector)) == cause


def counts(after: float, *, missing_mode: str = "", again: float | None = None) -> Trials:
    """Of both commits, head's bytes of a hand-off being ``after`` where base's are 100,000."""
    plan = exact_plan("gate", [EACH], SCHEDULES, seed=0)
    outcomes = {}
    for place, cell in enumerate(plan.cells):
        is_head = cell.release == "head"
        metrics = {"handoff_bytes": after if is_head else 1e5, "gc_collections_per_1000_steps": 9.0}
        for mode in plan.extra_modes:
            if is_head and mode == missing_mode:
                continue
            runs = cell if mode == "counts" else msgspec.structs.replace(cell, gc="disabled")
            asked = Trial(cell=runs, schedule_path="", schedule_sha256="", mode=mode)
            outcomes[trial_key(0, place, runs, mode)] = answer(asked, metrics)
            if mode == "counts" and again is not None:
                other = msgspec.structs.replace(
                    answer(asked, metrics), processes=[process((int(again), 0, 0))]
                )
                outcomes[trial_key(0, place + 2, runs, mode)] = other
    return Trials(plan, outcomes)


def judged(trials: Trials, change: TimingChange | None) -> GateCell:
    found = judge_pairs([EACH], trials, None, {EACH: change} if change else {}, str)
    return found.cells[0]


BETTER, SAME, WORSE, WIDE = (
    timing(change, 0.0, "", half_width)
    for change, half_width in ((-0.1, 0.006), (0.0, 0.006), (0.1, 0.006), (0.0, 0.1))
)


@pytest.mark.parametrize(
    ("after", "change", "verdict"),
    [
        (2e5, None, "worse"),
        (2e5, SAME, "worse"),
        (2e5, WIDE, "worse"),
        (2e5, BETTER, "better"),
        (5e4, None, "better"),
        (5e4, SAME, "better"),
        (5e4, WORSE, "worse"),
        (1e5, None, "same"),
        (1e5, WIDE, "inconclusive"),
        (1e5, BETTER, "better"),
        (1e5, WORSE, "worse"),
    ],
)
def test_time_decides_where_it_can_and_an_exact_loss_unless_time_was_won(after, change, verdict):
    assert judged(counts(after), change).verdict == verdict


@pytest.mark.parametrize(
    ("after", "change", "verdict"),
    [(1e5, SAME, "incomplete"), (5e4, None, "incomplete"), (2e5, None, "worse")],
)
def test_a_mode_without_a_result_is_no_success(after, change, verdict):
    assert judged(counts(after, missing_mode="opcodes"), change).verdict == verdict


@pytest.mark.parametrize(("again", "is_compared"), [(0, True), (1, False)])
def test_two_counts_that_differ_are_not_compared(again, is_compared):
    metrics = [change.metric for change in judged(counts(1e5, again=again), None).exact]
    assert ("gc_collections_per_1000_steps" in metrics) == is_compared


@pytest.mark.parametrize(
    ("verdicts", "missing", "verdict"),
    [
        (["same", "worse", "better"], ["a"], "worse"),
        (["same", "better"], ["a"], "incomplete"),
        (["same", "better"], [], "better"),
        (["same", "inconclusive"], [], "inconclusive"),
        (["same", "incomplete", "better"], [], "incomplete"),
        (["same"], [], "same"),
        ([], [], "incomplete"),
    ],
)
def test_the_commit_is_its_worst_cell(verdicts, missing, verdict):
    assert overall([made_cell("x", each) for each in verdicts], missing) == verdict


def test_512_counts_are_kept(tmp_path, tree):  # noqa: F811
    kept = KeptCounts("engines", tmp_path / "kept")
    kept.folder.mkdir()
    for number in range(600):
        (kept.folder / f"{number}.json").touch()
    laid_out = tree("one")
    kept.save(counted_tree(laid_out)[0], laid_out, counted_tree(laid_out)[1])
    assert len(list(kept.folder.glob("*.json"))) == 512

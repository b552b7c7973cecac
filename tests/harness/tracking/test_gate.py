"""The gate over a planted history: counts for real, times on a simulated clock."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache, partial

import msgspec
import numpy as np
import pytest
from examples import every, examples
from hypothesis import given
from hypothesis.strategies import floats
from msgspec.structs import replace
from planted_history import COMMITS, make
from small import CELL, Calls, MemoryStore, answer, schedule

from engines.builtin.engine import Engine
from gcbench.function_costs import FunctionCost
from harness import format as fmt
from harness.axes import Cell
from harness.cli.main import main
from harness.experiment.outcomes import Trials
from harness.experiment.rounds import Precision, Rounds
from harness.experiment.store import trial_key
from harness.tracking.gate.c_functions import PER_STEP
from harness.tracking.gate.exact_counts import judge_pairs, overall
from harness.tracking.gate.plan import TURN_STEPS, GatePair, exact_plan, pair, timing_plan
from harness.tracking.gate.result import GateCell, GateResult
from harness.tracking.gate.timing import Timings, attribute_changes, changed, compare_timings
from harness.tracking.gate.words import conclude_gate
from harness.trial.engine_config import engine_config
from harness.trial.request_costs import cost_metrics, request_costs
from harness.trial.spec import Trial, TrialResult
from harness.trial.step_costs import CFunctionCost, Counted, StepCosts

SHAPES = [
    msgspec.structs.replace(CELL, representation=shape, delivery=delivery, batch_size=1024)
    for shape, delivery in (("list_of_lists", "per_request"), ("flat_arrays", "columnar"))
]
SCHEDULES = {CELL.workload: "hash"}
EXACT = {
    "gc_collections_per_1000_steps": 4900.0,
    "tracked_peak_per_step": 4032.0,
    "tracked_survivors_per_step": 0.0,
    "tracked_allocations_per_step": 4060.0,
    "bytecodes_per_request_step": 113.0,
    "handoff_bytes": 99_000.0,
}


def pairs(cells: Sequence[Cell] = SHAPES) -> list[GatePair]:
    """The cells under two commits, neither of which is on disk."""
    return [pair(cell.representation, cell, "base", "head", n) for n, cell in enumerate(cells)]


class Clock:
    """A machine that drifts, bursts and has slow processes, as two cores of a virtual one do.

    ``effects``: head's host time over base's, with the collector and without. The collector is
    half of the base's time, so what the code alone changes shows twice as much without it.
    """

    def __init__(self, effects: tuple[float, float], seed: int) -> None:
        self.effects = effects
        self.rng = np.random.default_rng(seed)

    def measure(self, trials: Sequence[Trial]) -> Iterator[TrialResult]:
        slices = 20
        drift = self.rng.normal(0, 0.03) + self.rng.normal(0, 0.01, slices)
        for trial in trials:
            control = trial.cell.gc == "disabled"
            effect = self.effects[control] if trial.cell.release == "head" else 1.0
            process = self.rng.normal(0, 0.012) + (self.rng.random() < 0.05) * 0.15
            bursts = (self.rng.random(slices) < 0.05) * self.rng.uniform(0, 0.5, slices)
            noise = drift + process + bursts + self.rng.normal(0, 0.015, slices)
            by_step = np.repeat(noise, TURN_STEPS) + self.rng.normal(0, 0.03, slices * TURN_STEPS)
            host = (1e-3 if control else 2e-3) * effect * np.exp(by_step)
            metrics = {"host_time_per_step": float(host.mean()), "num_steps": float(len(host))}
            yield msgspec.structs.replace(
                answer(trial, metrics), step_host_ns=(host * 1e9).astype(int).tolist()
            )


def counted(
    of: list[GatePair], after: dict[str, float], before: dict[str, float] = EXACT
) -> Trials:
    """Trials that count: ``before`` under base, and under head the same but for ``after``."""
    plan = exact_plan("gate", of, SCHEDULES, seed=0, with_instructions=PER_STEP in before)
    outcomes = {}
    for place, cell in enumerate(plan.cells):
        metrics = before | (after if cell.release == "head" else {})
        for mode in plan.extra_modes:
            stands_for = cell if mode == "counts" else msgspec.structs.replace(cell, gc="disabled")
            trial = Trial(cell=stands_for, schedule_path="", schedule_sha256="", mode=mode)
            outcomes[trial_key(0, place, stands_for, mode)] = answer(trial, metrics)
    return Trials(plan, outcomes)


@cache
def timed(effects: tuple[float, float], seed: int) -> tuple[list[GatePair], Timings, Trials]:
    """The gate's timings as the command takes them, on the simulated clock."""
    of = pairs()
    timing = partial(timing_plan, "gate", schedules=SCHEDULES, seed=seed, rounds=7, tolerance=0.03)
    clock = Clock(effects, seed)

    def run(plan, compare):
        rounds = Rounds(plan, MemoryStore(), Calls(clock.measure), lambda turn, outcome: None)
        rounds.run(compare, Precision(0.01, 1e9))
        return compare(rounds.outcomes), Trials(plan, rounds.outcomes)

    plan = timing(of)
    timings, trials = run(plan, partial(compare_timings, of, plan))
    kinds = {each: kind for each, found in timings.by_pair.items() if (kind := changed(found))}
    if kinds:
        plan = timing(list(kinds), with_controls=True)
        attributions, _ = run(plan, partial(attribute_changes, kinds, plan))
        for each, found in attributions.by_pair.items():
            timings.by_pair[each] = replace(timings.by_pair[each], attribution=found)
    return of, timings, trials


def gated(effects: tuple[float, float], after: dict[str, float], seed: int) -> list[GateCell]:
    """A gate as the command runs it, with counts that are made up."""
    of, timings, trials = timed(effects, seed)
    judged = judge_pairs(of, counted(of, after), trials, timings.by_pair, lambda each: "again")
    assert judged.missing == []
    return judged.cells


EFFECTS = {
    "same": ((1.0, 1.0), {}),
    "worse: objects": (
        (1.09, 1.06),
        {"tracked_peak_per_step": 5056.0, "gc_collections_per_1000_steps": 5900.0},
    ),
    "worse: bytecodes": ((1.03, 1.06), {"bytecodes_per_request_step": 120.0}),
    "worse: C code": ((1.05, 1.10), {}),
    "better: C code": ((0.9, 0.8), {}),
}


def cause(cell: GateCell) -> str:
    """Whose doing the change of a cell is said to be; "" where it has not changed."""
    attribution = cell.timing.attribution
    return attribution.cause if attribution else ""


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1][:: every()])
def test_four_of_twelve_commits_are_named_on_a_simulated_clock(seed):
    named = {}
    for number, commit in enumerate(COMMITS, start=1):
        cells = gated(*EFFECTS[commit.kind], seed=1000 * seed + number)
        named[number] = (overall(cells), {cause(cell) for cell in cells})
    expected = {n: commit.kind.split(":")[0] for n, commit in enumerate(COMMITS, start=1)}
    assert {number: verdict for number, (verdict, _) in named.items()} == expected
    assert named[7][1] == named[9][1] == {"code"}
    assert named[3][1] <= {"both", "collector"}


@pytest.mark.slow
def test_what_the_code_saves_is_not_charged_to_the_collector():
    """It takes what it took, and so a larger share of less."""
    for found in gated((0.8, 0.6), {}, seed=3):
        by = found.timing.attribution
        assert by.cause == "code"
        assert by.code.ratio == pytest.approx(0.8, abs=0.02)
        assert by.collector.ratio == pytest.approx(1.0, abs=0.02)
        assert by.control.ratio == pytest.approx(0.6, abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_equal_commits_are_the_same_again_and_again_on_a_simulated_clock(record_property, count):
    said = Counter(overall(gated((1.0, 1.0), {}, seed)) for seed in range(count))
    record_property("verdicts", dict(said))
    assert said == {"same": count}


@pytest.mark.slow
def test_two_of_twelve_commits_are_named_by_exact_counts(tmp_path):
    repo = tmp_path / "repository"
    counted = ("worse: objects", "worse: bytecodes")
    hashes = make(repo, sorted(COMMITS, key=lambda commit: commit.kind in counted))
    named, changed = {}, {}
    # The ten that counts do not tell apart are taken together: what one of them moved would show.
    for first, number in ((0, 10), (10, 11), (11, 12)):
        base, head = hashes[first], hashes[number]
        report = tmp_path / f"{number}.json"
        flags = ["--exact-only", "--output-lens", "64", "--trial-timeout", "1200", "--quiet"]
        places = ["--repo", str(repo), "--output", str(tmp_path / "runs"), "--json", str(report)]
        status = main(["gate", base, head, *flags, *places])
        result = msgspec.json.decode(report.read_bytes(), type=GateResult)
        assert [cell.id for cell in result.cells] == [
            "list_of_lists · per_request",
            "flat_arrays · columnar",
        ]
        assert status == (result.verdict == "worse")
        named[number] = result.verdict
        changed[number] = [
            {
                change.metric: change.after - change.before
                for change in cell.exact
                if change.verdict != "same"
            }
            for cell in result.cells
        ]
    assert named == {10: "same", 11: "worse", 12: "worse"}
    for metrics in changed[11]:
        assert metrics.keys() >= {"memory_peak_per_step", "gc_collections_per_1000_steps"}
    # A turn of the loop is 7 bytecodes, all around it 13. A request that ends takes one, too.
    for grown in changed[12]:
        assert grown.pop("bytecodes_per_finish", 7) == 7
        assert grown.pop("bytecodes_per_request_step") == pytest.approx(7 + 13 / 988, rel=1e-2)
        assert grown == {"bytecodes_per_row": 7, "bytecodes_per_fixed": 13}


def test_a_mode_that_one_commit_does_not_survive_is_no_success():
    of = pairs(SHAPES[:1])
    whole = counted(of, {})
    for (mode, cell), result in list(whole.counted.items()):
        if mode == "opcodes" and cell.release == "head":
            del whole.counted[mode, result.cell]
    judged = judge_pairs(of, whole, None, {}, lambda each: "again")
    assert judged.missing == ["list_of_lists: no result of HEAD in mode opcodes."]


def test_counts_that_do_not_repeat_are_left_out_with_a_note():
    of = pairs(SHAPES[:1])
    trials = counted(of, {"gc_collections_per_1000_steps": 9000.0})
    trials.counts[of[0].head].update([(1, 0, 0), (2, 0, 0)])
    judged = judge_pairs(of, trials, None, {}, lambda each: "again")
    assert [change.metric for change in judged.cells[0].exact if change.verdict != "same"] == []
    assert "trials that should count alike did not" in judged.notes[0]


class Dearer(Engine):
    """Looks through each prompt before it is queued."""

    def add_request(self, request_index, prompt_token_ids, params, priority=0) -> None:
        for _ in range(10):
            pass
        Engine.add_request(self, request_index, prompt_token_ids, params, priority)


def test_work_planted_in_add_request_is_worse_and_said():
    of = schedule([40] * 16)
    before, after = (
        cost_metrics(request_costs(engine(engine_config(CELL, of)), of, 8))
        for engine in (Engine, Dearer)
    )
    judged = judge_pairs(pairs(), counted(pairs(), after, EXACT | before), None, {}, str)
    assert overall(judged.cells) == "worse"
    for cell in judged.cells:
        (change,) = [change for change in cell.exact if change.verdict != "same"]
        assert (change.metric, change.verdict) == ("bytecodes_per_add", "worse")
    (sentence,) = conclude_gate(judged.cells)
    rise = fmt.count(change.after - change.before)
    assert sentence.startswith(f"Every cell: a request costs {rise} more bytecodes to add (+")


@pytest.mark.parametrize(("rest", "is_told"), [(0.0095, False), (0.0105, True)])
def test_what_batch_and_context_do_not_explain_is_a_note_from_a_hundredth_on(rest, is_told):
    judged = judge_pairs(pairs(), counted(pairs(), {"cost_model_rest": rest}), None, {}, str)
    said = [note for note in judged.notes if "a step's bytecodes under HEAD" in note]
    assert bool(said) == is_told
    assert {cell.verdict for cell in judged.cells} == {"same"}


@pytest.mark.parametrize(
    ("rest", "row", "verdict"),
    [(0.0095, 99.0, "better"), (0.0105, 99.0, "same"), (0.0, 104.4, "worse")],
)
def test_a_gain_in_a_part_that_a_fit_may_have_made_is_none(rest, row, verdict):
    """What begins at step 121, or up to some batch, costs more: a fit that it does not fit has a
    smaller part, too.
    """
    parts = {"bytecodes_per_fixed": 1_814.0, "bytecodes_per_row": 99.0}
    after = {"bytecodes_per_fixed": 1_725.5, "bytecodes_per_row": row, "cost_model_rest": rest}
    of = pairs()
    judged = judge_pairs(of, counted(of, after, EXACT | parts), None, {}, str)
    assert {cell.verdict for cell in judged.cells} == {verdict}
    untold = [sentence for cell in judged.cells for sentence in cell.untold]
    assert bool(untold) == (verdict != "better")
    assert all(each.startswith("bytecodes_per_fixed is not told: it ") for each in untold)


@pytest.mark.parametrize(
    ("fixed", "context", "last", "verdict"),
    [
        (1_860.0, 0.0, 90_000, "better"),
        (1_860.0, 0.0, 100_001, "worse"),
        (1_814.0, 0.2, 90_000, "worse"),
    ],
)
def test_a_part_that_each_request_makes_up_for_is_no_loss(fixed, context, last, verdict):
    """Unless a step took more, or there is more of it in other steps than those that were traced.

    What is worse beside a part that is better is worse, for that may be the fit's.
    """
    before = {"fixed": 1_814.0, "row": 99.0, "context": 0.1}
    after = {"fixed": fixed, "row": 90.0, "context": 0.1 + context}
    before, after = (
        {f"bytecodes_per_{part}": value for part, value in each.items()} for each in (before, after)
    )
    of = pairs()
    trials = counted(of, after, EXACT | before)
    for key, result in list(trials.counted.items()):
        if key[0] == "grid":
            steps = [1_900, last if key[1].release == "head" else 100_000]
            trials.counted[key] = msgspec.structs.replace(result, grid_steps=steps)
    judged = judge_pairs(of, trials, None, {}, str)
    assert {cell.verdict for cell in judged.cells} == {verdict}
    said = [sentence for cell in judged.cells for sentence in cell.untold]
    assert any("grew (1,814 → 1,860), but none of the 2 steps" in each for each in said) == (
        verdict == "better"
    )


def test_functions_are_named_where_their_counts_have_changed():
    """Those of the step for a step's count, those of ``add_request`` for what it takes."""
    costs = {}
    of = schedule([40] * 16)
    for release, kind in (("base", Engine), ("head", Dearer)):
        made = request_costs(kind(engine_config(CELL, of)), of, 8)
        by_function = {call: cost.by_function() for call, cost in made.costs.items()}
        bytecodes = 900 if release == "base" else 1_800
        step = FunctionCost(
            file="a.py",
            name="step",
            line=1,
            code="",
            stage="",
            calls=1,
            bytecodes=bytecodes,
            allocations=9,
            net=0,
            all_bytecodes=bytecodes,
            all_allocations=9,
            lines=[],
        )
        costs[release] = StepCosts(
            num_steps=1, num_rows=9, functions=[step], calls=[], per_request=by_function
        )

    def judged(after: dict[str, float]) -> list[tuple[str, str]]:
        trials = counted(pairs(), after, EXACT | {"bytecodes_per_add": 300.0})
        for key, result in trials.counted.items():
            if result.mode == "opcodes":
                trials.counted[key] = replace(result, costs=costs[result.cell.release])
        (first, *others) = judge_pairs(pairs(), trials, None, {}, str).cells
        assert all(each.functions == first.functions for each in others)
        return [(each.when, each.function) for each in first.functions]

    add = [("add", "Dearer.add_request")]
    assert judged({}) == []
    assert judged({"bytecodes_per_request_step": 113.1}) == [], "below its floor"
    assert judged({"bytecodes_per_add": 400.0}) == add
    assert judged({"tracked_peak_per_step": 9_000.0}) == [("step", "step")]
    assert judged({"bytecodes_per_add": 400.0, "handoff_bytes": 9.0}) == [("step", "step"), *add]


def felt(of: GatePair, changes: dict[str, float]) -> Timings:
    """Timings of rounds whose steps take as long, and whose requests feel these ratios."""
    plan = timing_plan("gate", [of], schedules=SCHEDULES, seed=0, rounds=9, tolerance=0.03)
    rng = np.random.default_rng(0)
    outcomes = {}
    for number in range(1, plan.rounds + 1):
        drift = np.exp(rng.normal(0, 0.02))
        for place, cell in enumerate(of[1:3]):
            noise = drift * np.exp(rng.normal(0, 0.003))
            metrics = {
                "host_time_per_step": 1e-3 * noise,
                "num_steps": 500.0,
                "request_throughput": 500 / noise,
                "ttft_median": 0.02 * noise,
            }
            for metric, ratio in changes.items():
                metrics[metric] *= ratio if cell.release == "head" else 1.0
            steps = np.full(500, round(1e6 * noise)).tolist()
            trial = Trial(cell=cell, schedule_path="", schedule_sha256="")
            made = msgspec.structs.replace(answer(trial, metrics), step_host_ns=steps)
            outcomes[trial_key(number, place, cell, "timing")] = made
    return compare_timings([of], plan, outcomes)


@pytest.mark.parametrize(
    ("changes", "verdict", "words"),
    [
        ({}, "same", ""),
        ({"request_throughput": 0.2, "ttft_median": 29.0}, "worse", "beside them, as in add_req"),
        ({"ttft_median": 1.5}, "worse", "time to first token +"),
        ({"request_throughput": 0.5}, "worse", "request throughput -50"),
        ({"request_throughput": 2.0}, "better", "request throughput +100"),
        ({"ttft_median": 1.01}, "same", ""),
    ],
)
def test_what_requests_feel_outside_of_steps_decides_too(changes, verdict, words):
    """``add_request`` 60 times slower once passed: each step took what it did."""
    (of,) = pairs(SHAPES[:1])
    timings = felt(of, changes)
    judged = judge_pairs([of], counted([of], {}), None, timings.by_pair, lambda each: "again")
    (cell,) = judged.cells
    assert {cell.timing.steady.verdict, cell.timing.mean.verdict} == {"same"}
    assert cell.verdict == verdict
    sentences = " ".join(conclude_gate([cell]))
    assert words in sentences
    assert ("beside them" in sentences) == (verdict != "same")


WINDOWS = {"add": (300.0, 5.0), "finish": (800.0, 11.0), "abort": (500.0, 10.0)}


def with_windows(trials: Trials, abort: dict[str, list[tuple[float, float]]]) -> Trials:
    """The same with windows of requests' costs: as in `WINDOWS`, and of an abort as given."""
    for key, result in trials.counted.items():
        if result.mode == "opcodes":
            windows = {call: [Counted(*counts)] * 3 for call, counts in WINDOWS.items()}
            windows["abort"] = [Counted(*each) for each in abort[result.cell.release]]
            costs = StepCosts(num_steps=1, num_rows=9, functions=[], calls=[], windows=windows)
            trials.counted[key] = replace(result, costs=costs)
    return trials


@pytest.mark.parametrize(
    ("base", "head", "change", "words"),
    [
        ([(500, 10)] * 3, [(62, 7.5), (500, 10), (500, 10)], None, "62 and 500 under HEAD"),
        ([(500, 10)] * 3, [(938, 10), (500, 10), (62, 10)], None, "938 and 500 and 62 under HEAD"),
        ([(500, 10)] * 3, [(-38, 10)] * 3, None, "500 under BASE, -38 under HEAD"),
        ([(500, 10)] * 3, [(520, 10)] * 3, 20, ""),
        # What an engine does now and then it does under both, and texts differ by request.
        ([(578, 10), (500, 10), (500, 10)], [(598, 10), (520, 10), (520, 10)], 20, ""),
        ([(512, 10), (500, 10), (504, 10)], [(532, 10), (520, 10), (524, 10)], 20, ""),
    ],
)
def test_what_windows_do_not_agree_in_is_not_told_and_never_better(base, head, change, words):
    """A loop in every 32nd step once came out as 438 bytecodes fewer to abort a request."""
    of = pairs(SHAPES[:1])
    trials = with_windows(counted(of, {}), {"base": base, "head": head})
    judged = judge_pairs(of, trials, None, {}, lambda each: "again")
    (cell,) = judged.cells
    found = {each.metric: each.after - each.before for each in cell.exact if each.verdict != "same"}
    assert found == ({} if change is None else {"bytecodes_per_abort": change})
    assert cell.verdict == ("same" if change is None else "worse")
    said = [each for each in cell.untold if each.startswith("bytecodes_per_abort is not told")]
    assert words in "".join(said)
    assert bool(said) == (change is None)


@pytest.mark.parametrize("name", ["leaked_objects_per_step", "tracked_survivors_per_step"])
def test_a_count_below_nothing_is_no_gain(name):
    of = pairs(SHAPES[:1])
    judged = judge_pairs(of, counted(of, {name: -0.5}, EXACT | {name: 0.0}), None, {}, str)
    (cell,) = judged.cells
    assert name not in {change.metric for change in cell.exact}
    assert cell.untold == [f"{name} is not told: it comes out below nothing (0 → -0.500)."]
    assert cell.verdict == "same"
    (unchanged,) = judge_pairs(of, counted(of, {}, EXACT | {name: -0.5}), None, {}, str).cells
    assert unchanged.untold == []


@examples(100)
@given(before=floats(1.0, 1e9), more=floats(0.15, 10.0))
def test_a_step_of_15_percent_more_instructions_is_never_the_same(before, more):
    of = pairs(SHAPES[:1])
    base, head = ({PER_STEP: each} for each in (before, before * (1 + more)))
    (cell,) = judge_pairs(of, counted(of, head, EXACT | base), None, {}, str).cells
    assert cell.verdict == "worse"
    assert any("machine instructions" in sentence for sentence in conclude_gate([cell]))


def test_c_functions_that_took_more_are_named_the_largest_first():
    of = pairs(SHAPES[:1])
    before, after = {"a": 50.0, "b": 30.0, "c": 20.0}, {"a": 40.0, "c": 23.0, "d": 90.0}
    trials = counted(of, {PER_STEP: 153.0}, EXACT | {PER_STEP: 100.0})
    for key, result in trials.counted.items():
        of_side = after if result.cell.release == "head" else before
        costs = [CFunctionCost(name, "lib.so", count) for name, count in of_side.items()]
        trials.counted[key] = msgspec.structs.replace(result, c_functions=costs)
    (cell,) = judge_pairs(of, trials, None, {}, str).cells
    assert [(each.function, each.more) for each in cell.c_functions] == [("d", 90.0), ("c", 3.0)]
    (sentence,) = conclude_gate([cell])
    assert sentence.endswith("per step (+53.0 %, 100 → 153): d of lib.so +90, c of lib.so +3.")


def test_other_text_is_other_work():
    of = pairs(SHAPES[:1])
    trials = counted(of, {})
    for key, result in trials.counted.items():
        text = {"base": "this", "head": "that"}[result.cell.release]
        trials.counted[key] = msgspec.structs.replace(result, text_sha256=text)
    judged = judge_pairs(of, trials, None, {}, lambda each: "again")
    (sentence,) = judged.missing
    assert sentence.startswith("list_of_lists: HEAD produces other text than BASE; different work")


def test_other_tokens_are_other_work():
    of = pairs(SHAPES[:1])
    trials = counted(of, {})
    key = ("counts", of[0].head)
    trials.counted[key] = msgspec.structs.replace(trials.counted[key], tokens_sha256="other")
    judged = judge_pairs(of, trials, None, {}, lambda each: "again")
    assert judged.cells == []
    (sentence,) = judged.missing
    assert sentence.startswith("list_of_lists: HEAD produces other tokens than BASE; different")


@pytest.mark.slow
def test_an_exact_loss_that_wins_time_is_no_loss():
    (cell, _) = gated((0.9, 0.9), {"handoff_bytes": 200_000.0}, seed=1)
    assert (cell.timing.verdict, cell.verdict) == ("better", "better")
    (cell, _) = gated((1.0, 1.0), {"handoff_bytes": 200_000.0}, seed=1)
    assert (cell.timing.verdict, cell.verdict) == ("same", "worse")


def test_bytecodes_are_not_told_where_head_has_moved_work_into_a_thread():
    of = pairs()
    trials = counted(of, {"bytecodes_per_request_step": 90.0})
    for (mode, of_cell), found in trials.counted.items():
        if mode == "opcodes":
            beside = 1 + (of_cell.release == "head")
            costs = StepCosts(num_steps=1, num_rows=1, functions=[], calls=[], beside=beside)
            trials.counted[mode, of_cell] = msgspec.structs.replace(found, costs=costs)
    judged = judge_pairs(of, trials, None, {}, lambda each: "again")
    assert len(judged.missing) == len(of)
    assert "HEAD ran 2 other threads and processes, and BASE 1" in judged.missing[0]
    assert overall(judged.cells, judged.missing) == "incomplete"
    names = {change.metric for each in judged.cells for change in each.exact}
    assert names == EXACT.keys() - {"bytecodes_per_request_step", "tracked_allocations_per_step"}

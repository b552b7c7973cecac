from typing import Any

from harness.conclusion import conclude
from harness.experiment import (
    CellResult,
    Comparison,
    ExperimentResult,
    MetricSamples,
    Verdict,
)
from harness.trial import GcState, ProcessResult


def samples(*values: float | None) -> MetricSamples:
    return MetricSamples(
        unit="", direction="lower", kind="timing", median=None, samples=list(values)
    )


def process(full_passes: int) -> ProcessResult:
    return ProcessResult(
        role="engine",
        policy="default",
        state=GcState(
            enabled=True, thresholds=(700, 10, 10), freeze_count=0, tracked_objects=200_000
        ),
        collections=(300, 27, full_passes),
        collected=(0, 0, 0),
        pause_seconds=(0.1, 0.1, 0.1),
        max_pause_seconds=0.1,
        full_pass_seconds=0.02,
    )


def cell(name: str, group: int = 0, full_passes: int = 9, **metrics: MetricSamples) -> CellResult:
    return CellResult(
        id=name,
        axes={},
        group=group,
        samples=14,
        metrics=metrics,
        processes=[process(full_passes)],
        tokens_sha256="",
    )


def comparison(candidate: str, verdict: Verdict, ratio: float, **other: Any) -> Comparison:
    given: dict[str, Any] = {
        "metric": "host_time_per_step",
        "baseline": "lists",
        "ci95": (ratio - 0.01, ratio + 0.01),
        "p_adjusted": 0.001,
        "mde": 0.018,
        "rounds": 14,
    }
    return Comparison(candidate=candidate, verdict=verdict, ratio=ratio, **given | other)


def experiment(cells: list[CellResult], *comparisons: Comparison) -> ExperimentResult:
    return ExperimentResult(
        name="made-up",
        machine={},
        workload={},
        decide="host_time_per_step",
        tolerance=0.02,
        cells=cells,
        comparisons=list(comparisons),
        failures=[],
        notes=[],
        command="",
        code_commit="",
    )


def test_winners_come_first_the_largest_change_before_the_others() -> None:
    cells = [cell(name) for name in ("lists", "arrays", "flat", "padded", "tensor")]
    sentences = conclude(
        experiment(
            cells,
            comparison("tensor", "same", 1.003, ci95=(0.994, 1.012)),
            comparison("arrays", "worse", 1.25),
            comparison("flat", "better", 0.9),
            comparison("padded", "better", 0.8),
        )
    )
    assert sentences == [
        "padded is better than lists: "
        "host time per step -20.0 % (95 % interval -21.0 % to -19.0 %).",
        "flat is better than lists: host time per step -10.0 % (95 % interval -11.0 % to -9.0 %).",
        "arrays is worse than lists: "
        "host time per step +25.0 % (95 % interval +24.0 % to +26.0 %).",
        "tensor is the same as lists within 2 %: "
        "host time per step +0.30 % (95 % interval -0.60 % to +1.2 %).",
    ]


def test_what_stays_open_says_what_it_takes() -> None:
    cells = [cell("lists"), cell("flat")]
    open_question = comparison(
        "flat", "inconclusive", 0.985, ci95=(0.94, 1.03), mde=0.041, rounds=7
    )
    too_few = comparison("flat", "inconclusive", 0.9, rounds=5)
    at_the_edge = comparison("flat", "inconclusive", 0.985, ci95=(0.978, 0.992))
    assert conclude(experiment(cells, open_question)) == [
        "flat against lists is not resolved: "
        "host time per step -1.5 % (95 % interval -6.0 % to +3.0 %); "
        "7 rounds find a change of 4.1 %, one of 2 % takes about 29."
    ]
    assert conclude(experiment(cells, too_few)) == [
        "flat against lists is not resolved: "
        "host time per step -10.0 % (95 % interval -11.0 % to -9.0 %); "
        "a verdict takes 7 rounds and this run has 5."
    ]
    assert conclude(experiment(cells, at_the_edge)) == [
        "flat against lists is not resolved: "
        "host time per step -1.5 % (95 % interval -2.2 % to -0.80 %); "
        "14 rounds find a change of 1.8 %, and this one lies at the edge of the tolerance; "
        "more rounds narrow it."
    ]


def test_the_collector_explains_no_more_than_it_costs_the_baseline() -> None:
    cells = [cell("lists", gc_effect=samples(0.25, None, 0.26, 0.24)), cell("flat"), cell("padded")]
    better = comparison("flat", "better", 0.6), comparison("padded", "better", 0.9)
    assert conclude(experiment(cells, *better))[2:] == [
        "Without the collector lists spends 20.0 % less host time.",
        "The collector explains at most 50.0 % of the gain of flat; the rest is other work spared.",
        "The collector alone could explain the gain of padded.",
    ]


def test_a_collector_that_costs_nothing_explains_nothing() -> None:
    cells = [cell("lists", gc_effect=samples(-0.01, 0.0, -0.02)), cell("flat")]
    assert conclude(experiment(cells, comparison("flat", "better", 0.9)))[1:] == [
        "Without the collector lists is no faster: the collector explains none of the differences."
    ]


def test_a_share_of_throughput_is_not_set_against_host_time() -> None:
    cells = [cell("lists", gc_effect=samples(0.25)), cell("flat")]
    better = comparison("flat", "better", 1.3, metric="request_throughput")
    assert conclude(experiment(cells, better)) == [
        "flat is better than lists: request throughput +30.0 % (95 % interval +29.0 % to +31.0 %).",
        "Without the collector lists spends 20.0 % less host time.",
    ]


def test_few_full_passes_allow_no_claim() -> None:
    no_claim = (
        "No cell saw 5 full passes of the collector: nothing can be said about them from this run."
    )
    few = [cell("lists", full_passes=0), cell("flat", full_passes=4)]
    over_rounds = cell("lists", full_passes=1, gc_collections_gen2=samples(2, None, 2, 1))
    assert conclude(experiment(few)) == [no_claim]
    assert conclude(experiment([*few, cell("arrays", full_passes=5)])) == []
    assert conclude(experiment([over_rounds])) == []


def test_groups_stand_side_by_side() -> None:
    cells = [cell("lists"), cell("lists · null", group=1)]
    assert conclude(experiment(cells)) == [
        "Cells that differ in machine, interpreter, device or workload stand side by side: "
        "there is no verdict between them."
    ]


def test_nothing_measured_concludes_nothing() -> None:
    assert conclude(experiment([])) == []

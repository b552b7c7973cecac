from statistics import median
from typing import Any

import pytest
from msgspec.structs import replace

from harness.collector.result import GcState, ProcessResult
from harness.experiment.result import (
    Apart,
    CellResult,
    ChangePart,
    Comparison,
    ExperimentResult,
    FullPasses,
    MetricSamples,
    StepParts,
)
from harness.machine.describe import Machine
from harness.report.answer import headline
from harness.report.conclusion import conclude
from harness.report.experiment_image import experiment_image
from harness.report.pivot import pivot_tables
from harness.statistics.verdict import Verdict


def samples(*values: float | None) -> MetricSamples:
    known = [value for value in values if value is not None]
    middle = median(known) if known else None
    return MetricSamples(
        unit="", direction="lower", kind="timing", median=middle, samples=list(values)
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
        tokens_sha256=[],
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
        machine=Machine(),
        workloads=[],
        decide=["host_time_per_step"],
        tolerance=0.02,
        cells=cells,
        comparisons=list(comparisons),
        failures=[],
        notes=[],
        command="",
        code_commits=[],
    )


def test_the_best_is_the_headline_and_the_others_are_named_by_verdict() -> None:
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
        "Best: padded, host time per step -20.0 % against lists (95 %: -21.0 to -19.0 %).",
        "Also better: flat (-10.0 %).",
        "Worse: arrays (+25.0 %).",
        "The same within 2 %: tensor (+0.30 %).",
    ]


def test_where_higher_is_better_the_best_is_the_highest() -> None:
    cells = [cell("lists"), cell("flat"), cell("padded")]
    better = [
        comparison(name, "better", ratio, metric="request_throughput")
        for name, ratio in (("flat", 1.1), ("padded", 1.3))
    ]
    assert conclude(experiment(cells, *better)) == [
        "Best: padded, request throughput +30.0 % against lists (95 %: +29.0 to +31.0 %).",
        "Also better: flat (+10.0 %).",
    ]


def test_what_is_worse_and_alone_is_named_with_its_interval() -> None:
    cells = [cell("lists"), cell("flat"), cell("padded")]
    worse = comparison("flat", "worse", 1.3, metric="tpot_median")
    (sentence,) = conclude(experiment(cells, worse))
    assert sentence == "Worse: flat, TPOT median +30.0 % against lists (95 %: +29.0 to +31.0 %)."
    assert conclude(experiment(cells, worse, comparison("padded", "worse", 1.1))) == [
        "Nothing was found to beat lists.",
        "Worse: flat (+30.0 %); padded (+10.0 %).",
    ]


def test_what_stays_open_says_what_it_takes() -> None:
    cells = [cell("lists"), cell("flat")]
    open_question = comparison(
        "flat", "inconclusive", 0.985, ci95=(0.94, 1.03), mde=0.041, rounds=7
    )
    too_few = comparison("flat", "inconclusive", 0.9, rounds=5)
    at_the_edge = comparison("flat", "inconclusive", 0.985, ci95=(0.978, 0.992))
    nothing = "This run cannot tell whether anything beats lists."
    assert conclude(experiment(cells, open_question)) == [
        nothing,
        "Inconclusive: flat (-1.5 %); 7 rounds detect changes from 4.1 %; detecting 2 % takes "
        "about 13.",
    ]
    assert conclude(experiment(cells, too_few)) == [
        "No verdict on flat: a verdict takes 7 rounds, this run has 5."
    ]
    assert conclude(experiment(cells, at_the_edge)) == [
        nothing,
        "Inconclusive: flat (-1.5 %); 14 rounds detect changes from 1.8 %, and this one lies at "
        "the edge of the tolerance; more rounds narrow it.",
    ]


def test_the_collector_explains_no_more_than_it_costs_the_baseline() -> None:
    effect, share = samples(0.25, None, 0.26, 0.24), samples(0.1)
    cells = [cell("lists", gc_effect=effect, gc_pause_share=share), cell("flat")]
    assert conclude(experiment(cells, comparison("flat", "better", 0.6)))[1:] == [
        "Without the collector, lists spends 20.0 % less host time; "
        "its pauses take 10.0 % of the wall time.",
        "The Python version decides how often lists collects: a young collection starts at 700 "
        "new objects on Python 3.11 and 3.12, at 2,000 on Python 3.13 and 3.14. Measure on the "
        "version that you serve with.",
    ]


def test_a_collector_that_costs_nothing_explains_nothing() -> None:
    cells = [cell("lists", gc_effect=samples(-0.01, 0.0, -0.02)), cell("flat")]
    assert conclude(experiment(cells, comparison("flat", "better", 0.9)))[1:] == [
        "The collector is not to blame: without it lists spends no less host time."
    ]


@pytest.mark.parametrize(
    ("middle", "ci95", "says"),
    [
        (
            0.25,
            (0.2, 0.3),
            "Without the collector, lists spends 16.7 to 23.1 % (95 %) less host time.",
        ),
        (
            0.002,
            (-0.01, 0.012),
            "The collector is not to blame: it costs lists at most 1.2 % of "
            "its host time without one (95 %: -1.0 to +1.2 %).",
        ),
        (
            0.01,
            (-0.03, 0.07),
            "What the collector costs lists stays open: between -3.0 % and "
            "+7.0 % of its host time without one (95 %).",
        ),
    ],
)
def test_what_is_said_of_the_collector_follows_from_the_interval(middle, ci95, says) -> None:
    effect = replace(samples(middle, middle, middle), ci95=ci95)
    cells = [changed(cell("lists", gc_effect=effect), policy="threshold:700"), cell("flat")]
    assert conclude(experiment(cells, comparison("flat", "better", 0.9)))[1:] == [says]


def changed(one: CellResult, **state: Any) -> CellResult:
    """A cell whose process had another collector."""
    (ours,) = one.processes
    policy = state.pop("policy", ours.policy)
    ours = replace(ours, policy=policy, state=replace(ours.state, **state))
    return replace(one, processes=[ours])


@pytest.mark.parametrize(
    ("young", "said"),
    [
        (700, "700 new objects on Python 3.11 and 3.12, at 2,000 on Python 3.13 and 3.14"),
        (2000, "2,000 new objects on Python 3.13 and 3.14, at 700 on Python 3.11 and 3.12"),
    ],
)
def test_the_version_is_named_where_its_threshold_decides(young: int, said: str) -> None:
    costly = {"gc_effect": samples(0.25)}
    lists = changed(cell("lists", **costly), thresholds=(young, 10, 10))
    found = conclude(experiment([lists, cell("flat")], comparison("flat", "better", 0.6)))
    assert found[-1] == (
        "The Python version decides how often lists collects: a young collection starts at "
        f"{said}. Measure on the version that you serve with."
    )


@pytest.mark.parametrize(
    "lists",
    [
        cell("lists", gc_effect=samples(0.01)),
        changed(cell("lists", gc_effect=samples(0.25)), thresholds=(50_000, 20, 20)),
        changed(cell("lists", gc_effect=samples(0.25)), policy="threshold:700"),
    ],
    ids=["it costs little", "no version has it", "it was asked for"],
)
def test_the_version_decides_nothing(lists: CellResult) -> None:
    found = conclude(experiment([lists, cell("flat")], comparison("flat", "better", 0.6)))
    assert not any("Python" in sentence for sentence in found)


def test_few_full_passes_allow_no_claim() -> None:
    no_claim = (
        "The collector made fewer than 5 full passes in each cell: too few to judge what those "
        "cost."
    )
    few = [cell("lists", full_passes=0), cell("flat", full_passes=4)]
    over_rounds = cell("lists", full_passes=1, gc_collections_gen2=samples(2, None, 2, 1))
    assert conclude(experiment(few)) == [no_claim]
    assert conclude(experiment([*few, cell("arrays", full_passes=5)])) == []
    assert conclude(experiment([over_rounds])) == []
    assert conclude(experiment([changed(few[0], enabled=False)])) == []


def test_full_passes_of_timed_trials_allow_a_claim() -> None:
    """Those of the trials that count are one trial's."""
    seven, none = (FullPasses(count=count, trials=7, seconds=0.3, added=0.5) for count in (7, 0))
    apart = Apart(code=ChangePart(0.6, (0.59, 0.61), 0.01), full_passes=(seven, none))
    timed = comparison("flat", "better", 0.6, apart=apart)
    few = [cell("lists", full_passes=1), cell("flat", full_passes=0)]
    assert not any("says nothing" in each for each in conclude(experiment(few, timed)))


def test_groups_stand_side_by_side() -> None:
    cells = [cell("lists"), cell("lists · null", group=1)]
    assert conclude(experiment(cells)) == [
        "Cells that differ in machine, interpreter, device or workload are shown side by side, "
        "without a verdict between them."
    ]


def test_nothing_measured_concludes_nothing() -> None:
    assert conclude(experiment([])) == []


def test_a_real_devices_limit_is_named_for_the_cell_that_came_nearest():
    cells = [
        cell(name, achieved_serial_share=samples(share, share))
        for name, share in (("lists", 0.4), ("arrays", 0.81), ("others", 0.5))
    ]
    (sentence,) = [words for words in conclude(experiment(cells)) if "device" in words]
    assert "arrays came to 81.0 % of its limit: matrix products, attention and" in sentence
    assert not [words for words in conclude(experiment([cell("lists")])) if "device" in words]


def test_a_leak_and_collections_by_hand_are_said_of_the_cell_that_has_them():
    leaks = {"leaked_objects_per_step": samples(1.004), "explicit_collections": samples(15.0)}
    none = {"leaked_objects_per_step": samples(0.004), "explicit_collections": samples(0.0)}
    cells = [cell("lists", **none), cell("arrays", **leaks), cell("others", **none)]
    compared = [comparison("arrays", "same", 1.0), comparison("others", "same", 1.0)]
    said = conclude(experiment(cells, *compared))
    assert "A step of arrays leaves 1.00 tracked objects behind for good, lists 0.00400." in said
    assert "arrays calls the collector by hand 15 times, lists 0." in said
    assert not [
        sentence for sentence in said if sentence.startswith(("A step of others", "others"))
    ]


def test_two_figures_that_read_alike_are_no_difference() -> None:
    peaks = {
        name: cell(name, tracked_peak_per_step=samples(value))
        for name, value in (("lists", 2061.2), ("flat", 2061.4))
    }
    said = conclude(experiment([*peaks.values()], comparison("flat", "same", 1.0)))
    assert not [sentence for sentence in said if "tracked objects alive" in sentence]


def test_a_large_change_that_stays_open_does_not_lie_at_the_edge_of_the_tolerance() -> None:
    """An outlier may widen the interval of a change whose ordinary samples are steady."""
    cells = [cell("lists"), cell("flat")]
    far = comparison("flat", "inconclusive", 1.2, ci95=(0.99, 1.3), mde=0.012)
    assert conclude(experiment(cells, far))[1] == (
        "Inconclusive: flat (+20.0 %); 14 rounds detect changes from 1.2 %, but its interval (-1.0 "
        "to +30.0 %) leaves no verdict; more rounds narrow it."
    )


def test_nothing_that_is_left_is_less_than_nothing() -> None:
    leaks = {"lists": -0.004, "flat": 1.5}
    cells = [cell(name, leaked_objects_per_step=samples(value)) for name, value in leaks.items()]
    said = conclude(experiment(cells, comparison("flat", "same", 1.0)))
    assert "A step of flat leaves 1.50 tracked objects behind for good, lists 0." in said


def test_neither_leaves_anything_where_one_has_let_go_of_more() -> None:
    cells = [
        cell("lists", leaked_blocks_per_step=samples(-10.6)),
        cell("flat", leaked_blocks_per_step=samples(0.0)),
    ]
    said = conclude(experiment(cells, comparison("flat", "same", 1.0)))
    assert not [sentence for sentence in said if "blocks" in sentence]


def with_policies(*policies: str, pauses: float = 0.1) -> list[CellResult]:
    """Cells named by their policy, the first the baseline, whose pauses take so much."""
    found = {"gc_pause_share": samples(pauses)}
    return [replace(cell(each, **found), axes={"gc": each}) for each in policies]


def against_default(candidate: str, verdict: Verdict, ratio: float, **other: Any) -> Comparison:
    return comparison(candidate, verdict, ratio, baseline="default", **other)


def test_a_cell_without_a_collector_is_no_candidate_however_fast_it_is() -> None:
    cells = with_policies("default", "freeze", "disabled")
    faster = against_default("disabled", "better", 0.85), against_default("freeze", "better", 0.9)
    result = experiment(cells, *faster)
    assert conclude(result)[0].startswith("Best: freeze, host time per step -10.0 % against")
    assert (
        "For reference, the collector off, so garbage stays for good: disabled, host time per step "
        "-15.0 % against default (95 %: -16.0 to -14.0 %)."
    ) in conclude(result)
    assert not any("Also better" in each for each in conclude(result))
    assert headline(result).startswith("▲ Best: freeze")
    (table,) = pivot_tables(result)
    assert [(row[0], row[-1]) for rows in table.groups for row in rows] == [
        ("disabled", "○ reference"),
        ("freeze", "▲ better"),
    ]
    assert "▲ 1 better  ○ 1 reference" in table.caption


def test_where_only_freeze_is_the_same_nothing_is_recommended() -> None:
    cells = with_policies("default", "freeze", "disabled")
    compared = against_default("disabled", "better", 0.85), against_default("freeze", "same", 1.0)
    result = experiment(cells, *compared)
    assert headline(result) == "= Nothing was found to beat default."


def test_a_reference_alone_is_said_to_be_one() -> None:
    cells = with_policies("default", "disabled")
    result = experiment(cells, against_default("disabled", "better", 0.85))
    assert headline(result).startswith("○ For reference, the collector off, so garbage stays")
    assert b"reference" in experiment_image(result, ".svg")


def test_cells_that_are_all_without_a_collector_are_compared_as_any() -> None:
    cells = [replace(each, axes={"gc": "disabled"}) for each in (cell("lists"), cell("flat"))]
    assert headline(experiment(cells, comparison("flat", "better", 0.9))).startswith("▲ Best: flat")


@pytest.mark.parametrize(
    ("ratio", "pauses", "metric", "is_said"),
    [
        (0.874, 0.014, "tpot_median", True),
        (1 / 0.874, 0.014, "request_throughput", True),
        (0.874, 0.10, "tpot_median", False),
        (0.96, 0.014, "tpot_median", False),  # its interval allows what pauses can explain
        (1.2, 0.014, "tpot_median", False),
    ],
)
@pytest.mark.parametrize("policy", ["disabled", "freeze"])
def test_a_gain_beyond_the_pauses_is_implausible(ratio, pauses, metric, is_said, policy) -> None:
    cells = with_policies("default", policy, pauses=pauses)
    found = against_default(policy, "better", ratio, metric=metric)
    said = [each for each in conclude(experiment(cells, found)) if each.startswith("Implausible")]
    assert bool(said) == is_said
    if said:
        assert f"{policy} gains 12.6 %, but the pauses of default take 1.4 % of the time" in said[0]


def test_pauses_are_held_against_the_time_that_the_metric_is_of() -> None:
    """Beside a slow device pauses are little of the wall time and much of the host's."""
    default, freeze = with_policies("default", "freeze", pauses=0.001)
    default = replace(default, step=StepParts(code=0.0045, young=0.0002, full=0.0003))
    for ratio, is_said in ((0.9, False), (0.7, True)):
        result = experiment([default, freeze], against_default("freeze", "better", ratio))
        assert any("Implausible" in each for each in conclude(result)) == is_said


def test_another_shape_may_gain_more_than_the_pauses() -> None:
    default, freeze = with_policies("default", "freeze", pauses=0.01)
    flat = replace(freeze, axes={"gc": "freeze", "representation": "flat_arrays"})
    result = experiment([default, flat], against_default("freeze", "better", 0.5))
    assert not any("Implausible" in each for each in conclude(result))

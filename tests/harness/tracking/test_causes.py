"""Sentences on causes agree with the figures beside them, over made-up gates."""

import re

from gate_results import EXACT, cell, exact
from hypothesis import given
from hypothesis import strategies as st

from harness import format as fmt
from harness.experiment.result import Comparison
from harness.report.summary import VERDICTS
from harness.statistics.verdict import LEAST_CHANGE
from harness.tracking.gate.result import CauseOfChange, StallChange, TimingChange
from harness.tracking.gate.timing import cause_of
from harness.tracking.gate.words import conclude_gate

TOLERANCE = 0.03
PERCENT = r"[+-][\d,.]+ %"


@st.composite
def comparisons(draw) -> Comparison:
    """A change and how surely it is known, with the verdict that belongs to them."""
    change = draw(st.sampled_from([-0.3, -0.05, -0.01, 0.0, 0.004, 0.012, 0.04, 0.09, 0.5]))
    reach = draw(st.sampled_from([0.001, 0.01, 0.06]))
    is_same = abs(change) + reach <= TOLERANCE
    is_found = abs(change) > reach and abs(change) >= LEAST_CHANGE * TOLERANCE
    verdict = "same" if is_same else ("worse" if change > 0 else "better") if is_found else ""
    return Comparison(
        metric="host_time_per_step",
        baseline="base",
        candidate="head",
        ratio=1 + change,
        ci95=(1 + change - reach, 1 + change + reach),
        verdict=verdict or "inconclusive",
        p_adjusted=0.001,
        mde=2 * reach,
        rounds=9,
    )


@st.composite
def timings(draw) -> TimingChange:
    """Any of the three may have changed, and so may the parts."""
    steady, mean, change, control, code, collector = (draw(comparisons()) for _ in range(6))
    has_changed = {steady.verdict, mean.verdict} & {"better", "worse"}
    by = CauseOfChange(
        control=control, code=code, collector=collector, cause=cause_of(change, code, collector)
    )
    return TimingChange(
        before=1e-3,
        after=1e-3 * steady.ratio,
        steady=steady,
        mean_before=1e-3,
        mean_after=1e-3 * mean.ratio,
        mean=mean,
        stalls=None,
        attribution=by if has_changed and draw(st.booleans()) else None,
    )


def said(timing: TimingChange, exact_changes=()) -> list[str]:
    found = conclude_gate([cell("lists", timing.verdict, exact_changes, timing)])
    return [sentence.removeprefix("lists: ") for sentence in found]


@given(timings())
def test_a_cause_goes_the_way_of_its_change(timing):
    of_usual = timing.steady.verdict in ("better", "worse")
    for sentence in said(timing):
        if "host time" not in sentence:
            continue
        is_mean = "mean host time" in sentence
        found = timing.mean if is_mean else timing.steady
        shown = [fmt.percent(found.ratio - 1, signed=True), fmt.interval(found.ci95)]
        assert all(each in sentence for each in shown)
        if is_mean and "a usual step takes what it did" in sentence:
            assert timing.steady.verdict == "same"
        by = timing.attribution
        _, _, cause = sentence.partition("): ")
        if not cause:
            continue
        assert by is not None
        assert is_mean != of_usual, "the rounds that looked for the cause looked at the other"
        assert found.verdict in ("better", "worse")
        code, collector = (each.ratio - 1 for each in (by.code, by.collector))
        way = 1 if found.verdict == "worse" else -1
        assert f"{fmt.percent(code, signed=True)} by the code" in cause
        assert f"{fmt.percent(collector, signed=True)} by the collector" in cause
        if cause.startswith("too noisy"):
            continue
        assert way * (code + collector) > 0
        reach = sum((each.ci95[1] - each.ci95[0]) / 2 for each in (found, by.code, by.collector))
        assert abs(code + collector - (found.ratio - 1)) <= reach + 1e-12
        if cause.startswith("the code's"):
            assert way * code > 0
            assert by.code.verdict == found.verdict
        if cause.startswith("the collector's"):
            assert way * collector > 0
            assert by.collector.verdict == found.verdict
        if "not the collector's" in cause:
            assert by.collector.verdict == "same"
        if "not the code's" in cause:
            assert by.code.verdict == "same"


@given(
    st.integers(0, 9),
    st.integers(0, 9),
    st.floats(1e-4, 1.0),
    st.floats(1e-4, 1.0),
    st.sampled_from([-0.02, -0.0005, 0.0004, 0.03]),
    st.sampled_from(list(VERDICTS)),
)
def test_a_sentence_on_stalls_has_both_sides(before, after, longest, other, share, verdict):
    if verdict in ("better", "worse"):
        verdict = "worse" if share > 0 else "better"
    stalls = StallChange(
        before=before,
        after=after,
        longest_before=longest,
        longest_after=other,
        steps=4_500,
        rounds=9,
        ratio=1 + share,
        ci95=(1 + share - 0.01, 1 + share + 0.01),
        p_adjusted=0.001,
        verdict=verdict,
    )
    same = of_ratio(1.0, "same")
    timing = TimingChange(
        before=1, after=1, steady=same, mean_before=1, mean_after=1, mean=same, stalls=stalls
    )
    found = [sentence for sentence in said(timing) if "stall" in sentence]
    assert bool(found) == (verdict != "same")
    for sentence in found:
        if verdict == "inconclusive":
            continue
        assert sentence.startswith("HEAD stalls" if share > 0 else "BASE stalls")
        mine, theirs = ((after, other), (before, longest))[:: 1 if share > 0 else -1]
        for count, seconds in (mine, theirs):
            assert str(count) in sentence
            assert not count or fmt.seconds(seconds) in sentence
        assert fmt.percent(share, signed=True) in sentence


@given(st.dictionaries(st.sampled_from(sorted(EXACT)), st.floats(0.9, 1.2), min_size=1))
def test_counts_as_before_are_as_before(scales):
    """What is `same` in the table may be another number; a sentence does not call it equal."""
    changes = exact(**{name: EXACT[name] * by for name, by in scales.items()})
    moved = {change.metric for change in changes if change.before != change.after}
    objects = {"tracked_peak_per_step", "tracked_survivors_per_step"}
    sentences = conclude_gate([cell("lists", "worse", changes)])
    for sentence in sentences:
        if "tracked objects are as many as before" in sentence:
            assert not objects & moved
        if "with as many tracked ones alive" in sentence:
            assert not objects & moved
        if "what the collector counts is as before" in sentence:
            counted = objects | {"tracked_allocations_per_step", "gc_collections_per_1000_steps"}
            assert not counted & moved
        assert not re.search(r"(?<![\d,.])0 (more|fewer)", sentence)
        assert "0 a request" not in re.sub(r"\d[\d,.]*0 a request", "", sentence)
        for word, way in (("more", 1), ("fewer", -1)):
            for sign in re.findall(rf"{word} [\w ]*\(([+-])[\d.,]+ a request", sentence):
                assert sign == ("+" if way > 0 else "-")
        runs = re.search(
            r"the collector runs ([\d,.]+) times in 1,000 steps instead of ([\d,.]+)", sentence
        )
        if runs:
            assert runs[1] != runs[2]


def test_the_mean_has_no_cause_of_the_usual_step():
    slower = of_ratio(1.05, "worse")
    faster = of_ratio(0.9, "better")
    by = CauseOfChange(control=slower, code=slower, collector=of_ratio(1.0, "same"), cause="code")
    timing = TimingChange(
        before=1,
        after=1.05,
        steady=slower,
        mean_before=1,
        mean_after=0.9,
        mean=faster,
        stalls=None,
        attribution=by,
    )
    usual, mean = said(timing)
    assert "the code's" in usual
    assert mean == "the mean host time per step -10.0 % (-11.0 to -9.0 %)."


def of_ratio(ratio: float, verdict: str) -> Comparison:
    return Comparison(
        metric="",
        baseline="",
        candidate="",
        ratio=ratio,
        ci95=(ratio - 0.01, ratio + 0.01),
        verdict=verdict,
        p_adjusted=0.001,
        mde=0.01,
        rounds=9,
    )

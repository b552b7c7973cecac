"""What a gate says of exact counts is true of the figures."""

import msgspec
import pytest
from gate_results import LISTS, cell, exact

from harness.collector.callers import CollectorCall
from harness.tracking.gate.exact_words import exact_sentences
from harness.tracking.gate.result import ExactChange


def change(metric: str, before: float, after: float) -> ExactChange:
    (made,) = (each for each in exact(**{metric: after}) if each.metric == metric)
    return ExactChange(
        metric=metric,
        unit=made.unit,
        direction=made.direction,
        before=before,
        after=after,
        verdict="worse" if after > before else "better",
    )


def said(*changes: ExactChange) -> list[str]:
    """Of these changes, beside what has not changed."""
    names = {each.metric for each in changes}
    rest = [each for each in exact() if each.metric not in names]
    return exact_sentences(cell(LISTS, "worse", [*rest, *changes]))


def test_a_leak_is_said_once_by_its_plainest_figure():
    assert said(
        change("tracked_survivors_per_step", 0, 0.989),
        change("leaked_objects_per_step", 0.004, 1.004),
        change("leaked_blocks_per_step", 0.02, 2.02),
        change("memory_kept_per_step", 0, 240),
    ) == ["a step leaves 1 more tracked object behind for good (0 → 1)."]


def test_what_goes_with_its_request_is_no_leak():
    same = ExactChange(
        metric="leaked_objects_per_step",
        unit="objects",
        direction="lower",
        before=0.004,
        after=0.004,
        verdict="same",
    )
    (sentence,) = said(change("tracked_survivors_per_step", 0, 1024), same)
    assert sentence == (
        "a step leaves 1,024 more tracked objects behind (+1 per request), which go when their "
        "requests do."
    )


@pytest.mark.parametrize(
    ("name", "after"), [("tracked_peak_per_step", 4000.0), ("tracked_allocations_per_step", 5000.0)]
)
def test_tracked_objects_are_only_called_as_many_where_they_are(name, after):
    runs = change("gc_collections_per_1000_steps", 1062.5, 1594.0)
    as_before = "tracked objects are as many as before"
    assert said(runs) == [
        f"{as_before}, and the collector runs 1,594 times in 1,000 steps instead of 1,062."
    ]
    told = " ".join(said(runs, change(name, 2061.0, after)))
    assert as_before not in told
    assert "and the collector runs 1,594 times" in told
    alone = exact_sentences(cell(LISTS, "worse", [runs]))
    assert alone == ["the collector runs 1,594 times in 1,000 steps instead of 1,062."]


def test_bytecodes_are_alone_only_where_the_collector_counts_as_before():
    code = change("bytecodes_per_request_step", 118.25, 125.25)
    assert said(code)[0].endswith("; what the collector counts is as before.")
    both = said(code, change("gc_collections_per_1000_steps", 1062.5, 1594.0))
    assert not any("as before." in sentence for sentence in both)


def call(
    generation: int, line: int, count: int, function: str = "EngineCore.step"
) -> CollectorCall:
    return CollectorCall(
        generation=generation,
        file="vllm/v1/engine/core.py",
        line=line,
        function=function,
        count=count,
    )


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (
            [],
            [call(2, 310, 15)],
            "15 times more (gen 2, vllm/v1/engine/core.py:310 in EngineCore.step).",
        ),
        (
            [call(2, 300, 15)],
            [call(2, 310, 14)],
            "1 time fewer (gen 2, vllm/v1/engine/core.py:310 in EngineCore.step).",
        ),
        (
            [call(0, 9, 4, "run")],
            [call(0, 12, 4, "run"), call(1, 310, 2)],
            "2 times more (gen 1, vllm/v1/engine/core.py:310 in EngineCore.step).",
        ),
    ],
)
def test_who_collects_by_hand_is_named_where_the_number_changed(before, after, words):
    counts = [sum(each.count for each in calls) for calls in (before, after)]
    of = cell(LISTS, "worse", [change("explicit_collections", *counts)])
    of = msgspec.structs.replace(of, calls_before=before, calls_after=after)
    assert exact_sentences(of) == [f"the collector is called by hand {words}"]

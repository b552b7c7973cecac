"""What is said about an engine's releases: how they grew, the newest one, and all of them."""

from collections.abc import Mapping, Sequence

from harness import format as fmt
from harness.experiment.result import CellResult, Comparison, ExperimentResult
from harness.metrics import METRICS
from harness.report.known_releases import KnownChange
from harness.report.release_lines import (
    BYTECODES,
    HOST_TIME,
    YOUNG,
    ReleaseLines,
    ReleaseStep,
    release_steps,
    version_of,
)
from harness.report.summary import median
from harness.statistics.paired_ratio import MIN_ROUNDS

_TOLD = (
    BYTECODES,
    YOUNG,
    "gc_collections_gen2",
    "tracked_peak_per_step",
    "tracked_survivors_per_step",
    "tracked_heap",
)
"""What is told of a new release, where it is exact."""


def growth_sentence(result: ExperimentResult, along: ReleaseLines) -> str:
    """How much dearer the newest version is than the oldest, in time and in bytecodes.

    Of the first line that has one of the two at both ends; "" where none has.
    """
    for line in along.lines:
        pairs = zip(along.releases, line.cells, strict=True)
        known = [(release, cell) for release, cell in pairs if cell and version_of(release)]
        if len(known) < 2:
            continue
        (first, one), (last, other) = known[0], known[-1]
        parts = []
        if verdict := _verdict_on_time(result, one.id, other.id):
            sure = f"(95 %: {fmt.interval(verdict.ci95)})"
            parts.append(f"{_more(verdict.ratio)} time per step {sure}")
        elif time := _ratio(one, other, HOST_TIME):
            parts.append(f"{_more(time)} time per step (medians, no verdict)")
        if bytecodes := _ratio(one, other, BYTECODES):
            parts.append(f"{_more(bytecodes)} bytecodes per request and step")
        if parts:
            return f"{along.known.name} {last} takes the host {' and '.join(parts)} than {first}"
    return ""


def _verdict_on_time(result: ExperimentResult, base: str, head: str) -> Comparison | None:
    ours = (each for each in result.comparisons if (each.baseline, each.candidate) == (base, head))
    timed = (each for each in ours if each.metric.startswith("host_time"))
    return next((each for each in timed if each.rounds >= MIN_ROUNDS), None)


def _ratio(one: CellResult, other: CellResult, metric: str) -> float | None:
    before, after = median(one, metric), median(other, metric)
    return after / before if before and after else None


def _more(ratio: float) -> str:
    return f"{fmt.percent(abs(ratio - 1))} {'less' if ratio < 1 else 'more'}"


def release_headline(along: ReleaseLines) -> str:
    """The news: which exact counts differ between the newest version and the one before.

    Of the first line that counts young collections exactly in both.
    """
    line = next((line for line in along.lines if line.is_exact(YOUNG)), None)
    known = [
        place
        for place, release in enumerate(along.releases)
        if version_of(release) and line and line.medians(YOUNG)[place] is not None
    ]
    if line is None or len(known) < 2:
        return f"{along.known.name} by release"
    before, newest = known[-2:]
    changed = []
    for metric in _TOLD:
        values = line.medians(metric)
        one, other = values[before], values[newest]
        if one is None or other is None or not line.is_exact(metric):
            continue
        if METRICS[metric].differs(one, other):
            change = f" ({fmt.percent(other / one - 1, signed=True)})" if one > 0 else ""
            changed.append(f"{METRICS[metric].words} {fmt.count(one)} → {fmt.count(other)}{change}")
    of = "" if line.is_exact(BYTECODES) else " of the collector"
    return (
        f"{along.known.name} {along.releases[newest]} against {along.releases[before]}: "
        f"{'; '.join(changed) or f'no exact count{of} has changed'}"
    )


def sentence(along: ReleaseLines, changes: Mapping[str, Sequence[KnownChange]]) -> str:
    """Where the exact count of young collections changed most between neighbours.

    Of the first line that has it. ``changes`` by release: those tried by themselves are named.
    """
    line = next((line for line in along.lines if line.is_exact(YOUNG)), None)
    if line is None:
        return "There is no exact count of the young collections here."
    values = line.medians(YOUNG)
    known = [
        (release, value)
        for release, value in zip(along.releases, values, strict=True)
        if value is not None and version_of(release)
    ]
    found = release_steps(along.releases, values, YOUNG)
    if not found:
        return f"The exact count of young collections ({line.name}) is the same in all releases."

    def words(step: ReleaseStep) -> str:
        change = step.value_after / step.value_before - 1 if step.value_before else None
        ratio = "" if change is None else fmt.percent(change, signed=True)
        tried = [f"#{change.pull}" for change in changes.get(step.after, ()) if change.tried]
        inside = ", with ".join(filter(None, [ratio, " and ".join(tried)]))
        return (
            f"{step.before} → {step.after}, {fmt.count(step.value_before)} to "
            f"{fmt.count(step.value_after)}{f' ({inside})' if inside else ''}"
        )

    (first, before), (last, after) = known[0], known[-1]
    largest, *others = found
    rest = f", the next {words(others[0])}" if others else ", and there is no other"
    return (
        f"The exact count of young collections ({line.name}) goes from {fmt.count(before)} in "
        f"{first} to {fmt.count(after)} in {last}; the largest step between neighbours is "
        f"{words(largest)}{rest}."
    )

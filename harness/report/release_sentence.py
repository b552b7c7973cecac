"""What is said about an engine's releases: how they grew, the newest one, and all of them."""

from collections.abc import Mapping, Sequence

from harness import format as fmt
from harness.experiment.result import ExperimentResult
from harness.metrics import METRICS
from harness.report.known_releases import KnownChange
from harness.report.release_lines import (
    BYTECODES,
    HOST_TIME,
    YOUNG,
    ReleaseLine,
    ReleaseLines,
    ReleaseStep,
    release_steps,
    version_of,
)
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
        told = (
            (_time_ends(result, along, line), "time per step"),
            (_ends(along, line, BYTECODES), "bytecodes per request and step"),
        )
        if found := [(ends, words) for ends, words in told if ends]:
            (first, last, _, _), _ = found[0]
            parts = [f"{change} {words}{sure}" for (_, _, change, sure), words in found]
            return f"{along.known.name} {last} takes the host {' and '.join(parts)} than {first}"
    return ""


_Ends = tuple[str, str, str, str]
"""The oldest release and the newest, the change between them, and how sure that is."""


def _ends(along: ReleaseLines, line: ReleaseLine, metric: str) -> _Ends | None:
    values = zip(along.releases, line.medians(metric), strict=True)
    known = [(release, value) for release, value in values if value and version_of(release)]
    if len(known) < 2:
        return None
    (first, before), (last, after) = known[0], known[-1]
    return first, last, _more(after / before), ""


def _time_ends(result: ExperimentResult, along: ReleaseLines, line: ReleaseLine) -> _Ends | None:
    """The verdict's where there is one, else of medians."""
    if not (ends := _ends(along, line, HOST_TIME)):
        return None
    first, last, change, _ = ends
    cells = dict(zip(along.releases, line.cells, strict=True))
    of = {place: cell.id for place in (first, last) if (cell := cells[place])}
    for each in result.comparisons:
        is_of_time = each.metric.startswith("host_time") and each.rounds >= MIN_ROUNDS
        if is_of_time and (each.baseline, each.candidate) == (of[first], of[last]):
            return first, last, _more(each.ratio), f" (95 %: {fmt.interval(each.ci95)})"
    return first, last, change, " (medians, no verdict)"


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

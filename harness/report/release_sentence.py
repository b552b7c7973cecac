"""What the exact counts say about an engine's releases: the newest one, and all of them."""

from collections.abc import Mapping, Sequence

from harness import format as fmt
from harness.metrics import METRICS
from harness.report.known_releases import KnownChange
from harness.report.release_lines import YOUNG, ReleaseLines, ReleaseStep, release_steps, version_of

_TOLD = (
    YOUNG,
    "gc_collections_gen2",
    "tracked_peak_per_step",
    "tracked_survivors_per_step",
    "tracked_heap",
)
"""What is told of a new release, where it is exact."""


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
    return (
        f"{along.known.name} {along.releases[newest]} against {along.releases[before]}: "
        f"{'; '.join(changed) or 'no exact count of the collector has changed'}"
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

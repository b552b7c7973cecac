"""What the exact counts say about vLLM's releases, in one sentence."""

from collections.abc import Mapping, Sequence

from harness import format as fmt
from harness.report.release_lines import YOUNG, ReleaseLines, Step, steps, version_of
from harness.report.vllm_releases import KnownChange


def sentence(along: ReleaseLines, changes: Mapping[str, Sequence[KnownChange]]) -> str:
    """Where the exact count of young collections changed most between neighbours.

    Of the first line that has it. ``changes`` by release: those tried by themselves are named.
    """
    line = next((line for line in along.lines if line.is_exact(YOUNG)), None)
    if line is None:
        return "There is no exact count of the young collections here."
    values = line.medians(YOUNG)
    known = [(release, value) for release, value in zip(along.releases, values, strict=True)
             if value is not None and version_of(release)]  # fmt: skip
    found = steps(along.releases, values, YOUNG)
    if not found:
        return f"The exact count of young collections ({line.name}) is the same in all releases."

    def words(step: Step) -> str:
        ratio = f"{fmt.ratio(step.value_after / step.value_before)}" if step.value_before else ""
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

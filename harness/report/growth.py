"""What `gcbench releases --explain` shows: which function made a step dearer, in which release."""

from collections.abc import Sequence
from itertools import pairwise

from harness import format as fmt
from harness.explain.growth import Arrival, Growth, VersionCost
from harness.report.function_words import figure, short_name, signed
from harness.report.header import machine_words
from harness.report.release_lines import changes_by_release
from harness.report.table import PlainTable
from harness.report.vllm_releases import load_vllm_releases

_NAMED = 3


def growth_header(result: Growth) -> list[tuple[str, str]]:
    """What was counted, on what."""
    return [
        ("machine", machine_words(result.machine)),
        ("workload", result.workload.name),
        ("cell", ", ".join(f"{axis} {value}" for axis, value in result.axes.items())),
        ("command", result.command),
    ]


def growth_answer(result: Growth) -> list[str]:
    """The answer, a sentence each."""
    if len(result.versions) < 2:
        return ["One release has nothing to be set beside; name two or more, or a range."]
    first, last = result.versions[0], result.versions[-1]
    sentences = [
        f"From {first.label} to {last.label} a request and step went from "
        f"{figure(first.bytecodes)} to {figure(last.bytecodes)} bytecodes"
        f"{_share(first.bytecodes, last.bytecodes)}, and from {figure(first.objects)} to "
        f"{figure(last.objects)} tracked objects{_share(first.objects, last.objects)}."
    ]
    steps = _steps(result.versions)
    dearer = sorted((each for each in steps if each[1] > 0), key=lambda each: -each[1])[:_NAMED]
    if dearer:
        named = ", ".join(f"{label} ({signed(more)})" for label, more in dearer)
        sentences.append(f"Bytecodes rose most with {named}.")
    return sentences


def growth_tables(result: Growth, rows: int) -> list[PlainTable]:
    """Each release, then the ``rows`` functions that changed most, and where they did."""
    return [_releases(result), _functions(result.arrivals, rows)]


def growth_candidates(result: Growth) -> list[str]:
    """What is known to have come with the releases that changed most, a line each.

    Which of a release's changes did it is not known.
    """
    steps = sorted(_steps(result.versions), key=lambda each: -abs(each[1]))[:_NAMED]
    changes = changes_by_release(
        [each.label for each in result.versions], load_vllm_releases().change
    )
    return [
        f"{label} ({signed(more)}): #{each.pull}, {each.words}"
        for label, more in steps
        for each in changes.get(label, [])
    ]


def _releases(result: Growth) -> PlainTable:
    largest = _largest(result.arrivals)
    before = [None, *result.versions]
    return PlainTable(
        "A request and step by release",
        ("release", "bytecodes", "change", "objects", "change", "changed most"),
        [
            [
                (
                    each.label,
                    figure(each.bytecodes),
                    signed(each.bytecodes - last.bytecodes) if last else fmt.MISSING,
                    figure(each.objects),
                    signed(each.objects - last.objects) if last else fmt.MISSING,
                    largest.get(each.label, fmt.MISSING) if last else fmt.MISSING,
                )
                for last, each in zip(before, result.versions, strict=False)
            ]
        ],
        "objects: tracked objects made, gross. changed most: the function with the largest change "
        "in bytecodes.",
    )


def _functions(found: Sequence[Arrival], rows: int) -> PlainTable:
    """What each function takes more from the first version to the last, and where it came in."""
    by_series: dict[int, list[Arrival]] = {}
    for each in found:
        by_series.setdefault(each.series, []).append(each)
    totals = {one: sum(each.bytecodes for each in those) for one, those in by_series.items()}
    ranked = sorted(totals, key=lambda one: -abs(totals[one]))
    ranked = [one for one in ranked if signed(totals[one]) != "0"]
    left = len(ranked) - rows
    return PlainTable(
        "By function, over all releases",
        ("function", "bytecodes", "objects", "came with"),
        [
            [
                (
                    f"{short_name(last.function)}\n  {last.file}:{last.line}",
                    signed(totals[one]),
                    signed(sum(each.objects for each in by_series[one])),
                    _came_with(by_series[one]),
                )
                for one in ranked[:rows]
                for last in by_series[one][-1:]
            ]
        ],
        "per request and step, each function's own, the largest change first"
        + (f"; {left:,} more are in --json FILE" if left > 0 else ""),
    )


def _came_with(found: Sequence[Arrival]) -> str:
    """The versions with which most of a function's change came, the largest part first."""
    ranked = sorted(found, key=lambda each: -abs(each.bytecodes))
    ranked = [each for each in ranked if signed(each.bytecodes) != "0"]
    kinds = {"new": " (new)", "gone": " (gone)", "split": " (split off)", "joined": " (joined)"}
    words = [
        f"{each.version}{kinds.get(each.kind, '')} {signed(each.bytecodes)}"
        for each in ranked[:_NAMED]
    ]
    if len(ranked) > _NAMED:
        words.append(f"{len(ranked) - _NAMED} more")
    return ",\n".join(", ".join(words[i : i + 2]) for i in range(0, len(words), 2))


def _largest(found: Sequence[Arrival]) -> dict[str, str]:
    """The function that changed most, by release."""
    largest: dict[str, Arrival] = {}
    for each in found:
        known = largest.get(each.version)
        if signed(each.bytecodes) != "0" and (
            known is None or abs(each.bytecodes) > abs(known.bytecodes)
        ):
            largest[each.version] = each
    return {
        version: f"{_method(each.function)} {signed(each.bytecodes)}"
        for version, each in largest.items()
    }


def _steps(versions: Sequence[VersionCost]) -> list[tuple[str, float]]:
    return [
        (after.label, after.bytecodes - before.bytecodes) for before, after in pairwise(versions)
    ]


def _method(name: str) -> str:
    """Its name without its class, as a narrow column has it."""
    parts = short_name(name).replace(".<locals>", "").split(".")
    return ".".join(parts[-2:] if parts[-1].startswith("<") else parts[-1:])


def _share(before: float, after: float) -> str:
    return f" ({fmt.percent(after / before - 1, signed=True)})" if before else ""

"""What `gcbench explain` shows of several versions: which function became dearer, and where."""

from collections.abc import Sequence
from itertools import pairwise
from operator import attrgetter
from textwrap import wrap

from harness import format as fmt
from harness.explain.result import Arrival, By, GrowthBody
from harness.render.table import PlainTable
from harness.report.function_words import cost_words, short_name, signed
from harness.report.known_releases import KnownReleases
from harness.report.release_lines import changes_by_release
from harness.report.version_costs import difference_sentence, sampling_sentences, stages_table

_NAMED = 3
_WIDEST_TEXT = 76


def growth_answer(body: GrowthBody) -> list[str]:
    """The answer, a sentence each."""
    if len(body.versions) == 1:
        sentences = ["One version has nothing to be set beside; name two or more, or a range."]
    else:
        sentences = [difference_sentence(body.versions[0], body.versions[-1])]
    rises = sorted((each for each in _steps(body) if each[1] > 0), key=lambda each: -each[1])
    if rises:
        named = ", ".join(f"{label} ({signed(more)})" for label, more in rises[:_NAMED])
        sentences.append(f"{body.by.capitalize()} rose most with {named}.")
    left_out = [f"Left out: {why}." for why in body.left_out]
    return [*sentences, *sampling_sentences(body.versions), *left_out]


def growth_tables(body: GrowthBody, rows: int, known: KnownReleases) -> list[PlainTable]:
    """Stages and versions, then the ``rows`` functions that changed most, and where they did."""
    ends = [body.versions[0], *body.versions[1:][-1:]]
    return [_versions(body), stages_table(ends), _functions(body, rows), _candidates(body, known)]


def _versions(body: GrowthBody) -> PlainTable:
    largest = _largest(body.arrivals, body.by)
    before = [None, *body.versions]
    return PlainTable(
        "A request and step by version",
        ("version", "bytecodes", "change", "objects", "change", "changed most"),
        [
            [
                (
                    each.label,
                    cost_words(each.bytecodes),
                    signed(each.bytecodes - last.bytecodes) if last else fmt.MISSING,
                    cost_words(each.objects),
                    signed(each.objects - last.objects) if last else fmt.MISSING,
                    largest.get(each.label, fmt.MISSING) if last else fmt.MISSING,
                )
                for last, each in zip(before, body.versions, strict=False)
            ]
        ],
        "objects: tracked objects made, gross. changed most: the function with the largest change "
        f"in {body.by}.",
    )


def _functions(body: GrowthBody, rows: int) -> PlainTable:
    """What each function takes more from the first version to the last, and where it came in."""
    of = attrgetter(body.by)
    by_series: dict[int, list[Arrival]] = {}
    for each in body.arrivals:
        by_series.setdefault(each.series, []).append(each)
    totals = {one: sum(map(of, those)) for one, those in by_series.items()}
    ranked = sorted(totals, key=lambda one: -abs(totals[one]))
    ranked = [one for one in ranked if signed(totals[one]) != "0"]
    left = len(ranked) - rows
    return PlainTable(
        f"By function, over all versions, the largest change in {body.by} first",
        ("function", "bytecodes", "objects", "came with"),
        [
            [
                (
                    f"{short_name(last.function)}\n  {last.file}:{last.line}",
                    signed(sum(each.bytecodes for each in by_series[one])),
                    signed(sum(each.objects for each in by_series[one])),
                    _came_with(by_series[one], body.by),
                )
                for one in ranked[:rows]
                for last in by_series[one][-1:]
            ]
        ],
        "per request and step, each function's own"
        + (f"; {left:,} more are in --json FILE" if left > 0 else ""),
    )


def _candidates(body: GrowthBody, known: KnownReleases) -> PlainTable:
    """What is known to have come with the versions that changed most: not that it did it."""
    steps = sorted(_steps(body), key=lambda step: -abs(step[1]))[:_NAMED]
    labels = [each.label for each in body.versions]
    changes = changes_by_release(labels, known.change)
    rows = [
        ("\n  ".join(wrap(f"{label}: #{each.pull}, {each.words}", _WIDEST_TEXT)), signed(more))
        for label, more in steps
        for each in changes.get(label, [])
    ]
    return PlainTable(
        "On record as new in the versions that changed most",
        ("pull request", f"the version's\n{body.by}"),
        [rows] if rows else [],
    )


def _came_with(found: Sequence[Arrival], by: By) -> str:
    """The versions with which most of a function's change came, the largest part first."""
    of = attrgetter(by)
    ranked = sorted(found, key=lambda each: -abs(of(each)))
    ranked = [each for each in ranked if signed(of(each)) != "0"]
    kinds = {"new": " (new)", "gone": " (gone)", "split": " (split off)", "joined": " (joined)"}
    words = [
        f"{each.version}{kinds.get(each.kind, '')} {signed(of(each))}" for each in ranked[:_NAMED]
    ]
    if len(ranked) > _NAMED:
        words.append(f"{len(ranked) - _NAMED} more")
    return ",\n".join(", ".join(words[i : i + 2]) for i in range(0, len(words), 2))


def _largest(found: Sequence[Arrival], by: By) -> dict[str, str]:
    """The function that changed most, by version."""
    of = attrgetter(by)
    largest: dict[str, Arrival] = {}
    for each in found:
        known = largest.get(each.version)
        if signed(of(each)) != "0" and (known is None or abs(of(each)) > abs(of(known))):
            largest[each.version] = each
    return {
        version: f"{_method(each.function)} {signed(of(each))}" for version, each in largest.items()
    }


def _steps(body: GrowthBody) -> list[tuple[str, float]]:
    """What each version takes more than the one before it."""
    of = attrgetter(body.by)
    return [(after.label, of(after) - of(before)) for before, after in pairwise(body.versions)]


def _method(name: str) -> str:
    """Its name without its class, as a narrow column has it."""
    parts = short_name(name).replace(".<locals>", "").split(".")
    return ".".join(parts[-2:] if parts[-1].startswith("<") else parts[-1:])

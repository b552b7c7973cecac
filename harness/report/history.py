"""What changed in stored results: the answer, the series that did, and what was read."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from harness import format as fmt
from harness.render.report import Listing, Picture, Report, known
from harness.render.table import PlainTable, Row
from harness.report.history_image import history_image
from harness.report.series_words import LABELS, change_label, counts_sentence, named_series
from harness.report.what_to_do import history_advice
from harness.tracking.history_result import HistoryResult, Read, SeriesChange
from harness.tracking.verdict import Word

_CAPTION = (
    "before, after and change compare the two commits; the verdict rests on the whole history "
    "between them and on which way the metric is better"
)
_MOVED: tuple[tuple[Word, ...], ...] = (
    ("worse", "better", "changed"),
    ("suspicious", "inconclusive"),
)
_STOOD: tuple[tuple[Word, ...], ...] = (
    ("same", "no_change_shown"),
    ("insufficient", "reset"),
    ("missing",),
)


def describe_history(result: HistoryResult) -> Report:
    """What changed first, then the rest of the series."""
    moved = [each for group in _MOVED for each in result.changes if each.verdict in group]
    return Report(
        heading="gcbench report",
        name=result.name,
        answer=_answer(result),
        advice=history_advice(result),
        tables=_tables(result.changes, _MOVED),
        lists=[
            Listing("Not compared", list(_not_compared(result.changes)), is_bad=True),
            Listing("Problems", result.problems, is_bad=True),
            Listing("Notes", result.notes),
        ],
        sure=[
            *known([("series", counts_sentence(_counted(result, LABELS), 0))]),
            *_read_pairs(result.read),
        ],
        more=_tables(result.changes, _STOOD),
        command=result.command,
        pictures=[
            Picture(
                "What changed",
                "The change of each series that moved, in percent of its figure at the earlier "
                "commit.",
                partial(history_image, result.name, moved),
            )
        ]
        if any(each.ratio is not None for each in moved)
        else [],
    )


def nothing_compared(result: HistoryResult) -> str:
    """Why no series has a figure on both sides, and what to do."""
    if not result.read.figures:
        return "these are raw trials, and commits are compared from asv's results"
    if result.between:
        return (
            "no series has a current figure at both commits; "
            "measure both with today's benchmarks: `asv run BASE^!`, `asv run HEAD^!`"
        )
    return "no series has current figures at two commits; measure another with `asv run`"


def _answer(result: HistoryResult) -> str:
    """How many series changed, in a line."""
    if not result.is_compared:
        return f"✗ Nothing to compare: {nothing_compared(result)}."
    number = _counted(result, _MOVED[0])
    first = next((word for word in _MOVED[0] if number[word]), None)
    if first is None:
        return LABELS["no_change_shown"]
    return f"{LABELS[first][0]} {counts_sentence(number, 0)}"


def _counted(result: HistoryResult, words: Iterable[Word]) -> dict[Word, int]:
    return {word: sum(each.verdict == word for each in result.changes) for word in words}


def _tables(changes: Sequence[SeriesChange], groups: Sequence[Sequence[Word]]) -> list[PlainTable]:
    """A table for each machine, environment and pair of commits.

    Where all is missing there is none: the list of what was not compared says so.
    """
    tables = []
    for title, series in _parts(changes):
        units = {fmt.plain_unit(fmt.short_unit(each.unit)) for each in series}
        says_unit = len(units) > 1
        in_ = "" if says_unit or units == {""} else f", in {units.pop()}"
        rows = [
            [_row(each, says_unit=says_unit) for each in series if each.verdict in group]
            for group in groups
        ]
        if any(rows) and not _is_missing(series):
            columns = ("series", "before", "after", "change", "verdict")
            tables.append(PlainTable(f"{title}{in_}", columns, [group for group in rows if group]))
    return [*tables[:-1], *(table._replace(caption=_CAPTION) for table in tables[-1:])]


def _not_compared(changes: Sequence[SeriesChange]) -> Iterator[str]:
    """Where no series has a value on both sides."""
    for title, series in _parts(changes):
        if _is_missing(series):
            sides = ([each.before for each in series], [each.after for each in series])
            before, after = (
                f"{fmt.count(sum(value is not None for value in side))} of {fmt.count(len(side))}"
                for side in sides
            )
            yield f"{title}: no series has both; {before} before, {after} after"


def _is_missing(series: Sequence[SeriesChange]) -> bool:
    return all(each.verdict == "missing" for each in series)


def _parts(changes: Sequence[SeriesChange]) -> Iterator[tuple[str, list[SeriesChange]]]:
    """What is compared on one machine between one pair of commits, in the order of the changes."""

    parts: dict[tuple[str, str, str, str], list[SeriesChange]] = {}
    for each in changes:
        key = (each.machine, each.environment, each.base, each.head)
        parts.setdefault(key, []).append(each)
    for (machine, environment, base, head), series in parts.items():
        yield f"{base[:8]} → {head[:8]} on {machine}, {environment}", series


def _row(change: SeriesChange, *, says_unit: bool) -> Row:
    """``says_unit``: with the unit beside the series' name, where that is a word."""
    unit = fmt.short_unit(change.unit)
    plain = fmt.plain_unit(unit)
    return (
        named_series(change) + (f", in {plain}" if says_unit and plain else ""),
        fmt.bare(change.before, unit),
        fmt.bare(change.after, unit),
        change_label(change.ratio),
        LABELS[change.verdict],
    )


def _read_pairs(read: Read) -> list[tuple[str, str]]:
    """What was read, as (label, words)."""
    old = f", {fmt.count(read.outdated)} of them of benchmarks as they were before"
    raw = (
        f"{fmt.count(read.trials)} with a result and {fmt.count(read.failures)} without, in "
        f"{read.experiments} experiment{'s' * (read.experiments != 1)}"
    )
    is_of_asv = bool(read.figures)
    return known(
        [
            ("commits", f"{read.commits}, of {read.first} to {read.last}" * is_of_asv),
            ("machines", ", ".join(read.machines)),
            ("environments", ", ".join(read.environments)),
            ("figures", f"{fmt.count(read.figures)}{old * bool(read.outdated)}" * is_of_asv),
            ("raw trials", raw * bool(read.trials or read.failures)),
        ]
    )

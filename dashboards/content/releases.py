"""Engines by release: a sentence, charts and a table of each summary with several releases."""

from typing import Any, NamedTuple

from harness import format as fmt
from harness.collector.policy import DESCRIPTIONS
from harness.experiment.result import CellResult, ExperimentResult
from harness.metrics import METRICS
from harness.report.collection_words import collections_words
from harness.report.known_releases import KnownChange
from harness.report.release_lines import (
    BYTECODES,
    HOST_TIME,
    YOUNG,
    ReleaseLine,
    ReleaseLines,
    changes_by_release,
    in_order,
    left_out,
    release_lines,
    release_name,
)
from harness.report.release_sentence import growth_sentence, release_headline, sentence
from harness.report.summary import median, on_device

CAPTIONS = {
    BYTECODES: "Bytecodes executed in a step, per request in it.",
    HOST_TIME: "Time of a step less the time blocked on the device, per request in it.",
    YOUNG: "In the whole run, over all processes.",
    "gc_collections_gen1": "In the whole run.",
    "gc_collections_gen2": (
        "In the whole run. Over a frozen heap they are more, and each of them short."
    ),
    "tracked_peak_per_step": (
        "Objects more that the collector tracks, at most within a step: what makes it run."
    ),
    "tracked_survivors_per_step": "Objects more after a step than before it, mean over steps.",
    "tracked_heap": "Tracked by the collector when the run begins, most of them from imports.",
    "gc_pause_share": "Share of the run in the process that serves it.",
    "gc_pause_max": "The longest collection of a run.",
}
"""Each chart's metric, and a sentence on it: what a step costs, then what the collector does."""


class Chart(NamedTuple):
    """``trust`` says in a sentence what its figures are worth."""

    metric: str
    title: str
    words: str
    trust: str


class RowFigures(NamedTuple):
    """A row of the table: one line's figures at one release, as words."""

    line: str
    values: list[str]


class ReleaseRow(NamedTuple):
    """A release of the table; ``reason`` where it was asked for and left out.

    ``place``: which of the charts' releases it is, None for one that they leave out.
    """

    place: int | None
    release: str
    day: str
    changes: list[KnownChange]
    figures: list[RowFigures]
    reason: str = ""


class ReleaseStudy(NamedTuple):
    """A summary with several releases, ready for its page.

    ``family``: what the releases are of, ``host_path``: what of it runs. ``headline``: how it grew,
    or else ``news``: the newest release against the one before. ``legend``: (line, what its policy
    does). ``data``: what the charts draw, for JSON.
    """

    family: str
    host_path: str
    where: str
    headline: str
    news: str
    sentence: str
    legend: list[tuple[str, str]]
    charts: list[Chart]
    rows: list[ReleaseRow]
    data: dict[str, Any]

    @property
    def weight(self) -> tuple[bool, int]:
        """Whether it counts bytecodes, and how many releases it has: the page opens with most."""
        return self.charts[0].metric == BYTECODES, len(self.rows)


TABLE_COLUMNS = (
    "Bytecodes",
    "Host time",
    "Collected g0/g1/g2",
    "Peak per step",
    "Left per step",
    "Heap objects",
    "Frozen",
    "In collections",
    "Longest pause",
)


def release_study(result: ExperimentResult) -> ReleaseStudy | None:
    """What the page shows of a result; None where it has fewer than two releases."""
    along = release_lines(result)
    if len(along.releases) < 2:
        return None
    metrics = [
        metric
        for metric in CAPTIONS
        if any(value is not None for line in along.lines for value in line.medians(metric))
    ]
    known = along.known
    changes = changes_by_release(along.releases, known.change)
    return ReleaseStudy(
        where=on_device(result.cells).removeprefix(", "),
        family=known.name,
        host_path=known.host_path,
        headline=growth_sentence(result, along) or release_headline(along),
        news=release_headline(along),
        sentence=sentence(along, changes),
        legend=[(line.name, DESCRIPTIONS.get(line.policy, "")) for line in along.lines],
        charts=[_chart(metric, along.lines) for metric in metrics],
        rows=_rows(result, along),
        data={
            "releases": [
                [
                    release_name(release),
                    known.day(release),
                    [
                        [change.pull, change.words, bool(change.tried)]
                        for change in changes.get(release, [])
                    ],
                ]
                for release in along.releases
            ],
            "lines": [line.name for line in along.lines],
            "charts": [_values(metric, along.lines) for metric in metrics],
        },
    )


def _chart(metric: str, lines: list[ReleaseLine]) -> Chart:
    counts = METRICS[metric].kind == "exact"
    if all(line.is_exact(metric) for line in lines if any(line.cells)):
        trust = "Exact: it repeats to the digit."
    elif counts:
        trust = "Counted, and not exact here: it does not repeat to the digit."
    else:
        rounds = {cell.samples for line in lines for cell in line.cells if cell}
        most = f"{min(rounds)} to {max(rounds)}" if len(rounds) > 1 else str(max(rounds))
        trust = (
            "One timed trial, without a verdict."
            if rounds == {1}
            else f"Medians of {most} timed trials, without a verdict; bars from least to most."
        )
    return Chart(metric, fmt.capitalised(METRICS[metric].words), CAPTIONS[metric], trust)


def _values(metric: str, lines: list[ReleaseLine]) -> dict[str, Any]:
    """For each line its medians, and [least, most] where samples differ."""
    return {
        "unit": METRICS[metric].unit,
        "value": [line.medians(metric) for line in lines],
        "spread": [
            [list(ends) if ends and ends[0] < ends[1] else None for ends in line.spread(metric)]
            for line in lines
        ],
    }


def _rows(result: ExperimentResult, along: ReleaseLines) -> list[ReleaseRow]:
    known, missing = along.known, left_out(result)
    releases = in_order([*along.releases, *missing])
    changes = changes_by_release(releases, known.change)
    places = {release: place for place, release in enumerate(along.releases)}
    return [
        ReleaseRow(
            places.get(release),
            release_name(release),
            known.day(release),
            changes.get(release, []),
            [
                RowFigures(line.name, _figures(cell))
                for line in along.lines
                if release in places and (cell := line.cells[places[release]])
            ],
            missing.get(release, ""),
        )
        for release in releases
    ]


def _figures(cell: CellResult) -> list[str]:
    """In the order of `TABLE_COLUMNS`."""
    process = next((process for process in cell.processes if process.role == "engine"), None)
    state = process.state if process else None
    return [
        fmt.count(median(cell, BYTECODES)),
        fmt.seconds(median(cell, HOST_TIME)),
        collections_words(median(cell, f"gc_collections_gen{gen}") for gen in range(3)),
        fmt.number(median(cell, "tracked_peak_per_step")),
        fmt.number(median(cell, "tracked_survivors_per_step")),
        fmt.count(state.tracked_objects) if state else fmt.MISSING,
        fmt.percent(state.freeze_count / state.tracked_objects)
        if state and state.tracked_objects
        else fmt.MISSING,
        fmt.percent(median(cell, "gc_pause_share")),
        fmt.seconds(median(cell, "gc_pause_max")),
    ]

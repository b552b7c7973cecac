"""Data as JavaScript files: a page opened from a disk may load scripts, and nothing else."""

import json
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from sys import float_info
from typing import Any

from dashboards.content.commits import Commit
from dashboards.content.recent_changes import RecentChange
from dashboards.content.series import ChartPoint, ChartSeries
from harness.format import one_of, short_unit
from harness.report.series_words import LABELS
from harness.tracking.verdict import Between, Key, SeriesVerdict


def assigned(name: str, value: Any) -> str:
    """A script that keeps ``value`` as ``gcbench[name]``. Raises ValueError for NaN or infinite."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    # Nothing in it can end a script element, wherever it is put.
    safe = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return f"(window.gcbench = window.gcbench || {{}})[{json.dumps(name)}] = {safe};\n"


def commits_value(commits: Iterable[Commit]) -> list[list[str]]:
    """What the pages know of each commit."""
    return [
        [each.hash, each.date, each.subject, each.url, each.page, each.author] for each in commits
    ]


def series_value(series: Iterable[ChartSeries]) -> list[list[Any]]:
    """What the pages need of each series to name it."""
    return [
        [each.page, each.title, each.suite, *each.key[:2], short_unit(each.unit)] for each in series
    ]


def benchmark_value(
    series: Sequence[ChartSeries],
    verdicts: Mapping[Key, SeriesVerdict],
    marks: Mapping[Key, list[RecentChange]],
    places: dict[str, int],
) -> dict[str, Any]:
    """A benchmark's page: the commits that it knows, and each series along them.

    ``noise``: of a series, relative; 0 where it has none or nobody can tell.
    """
    known = sorted({point.commit for each in series for point in each.points})
    position = {commit: place for place, commit in enumerate(known)}

    def along(each: ChartSeries, field: str) -> list[float | None]:
        row: list[float | None] = [None] * len(known)
        for point in each.points:
            value = getattr(point, field)
            row[position[point.commit]] = value if value is not None and isfinite(value) else None
        return row

    def marked(each: ChartSeries) -> list[list[Any]]:
        return [
            [
                position[places[change.first_after]],
                change.verdict,
                change.ratio,
                f"may be {one_of(change.plausible, 8)}" if len(change.plausible) > 1 else "",
            ]
            for change in marks.get(each.key, ())
            if places.get(change.first_after) in position
        ]

    return {
        "commits": known,
        "series": [
            {
                "label": each.label,
                "machine": each.key[0],
                "environment": each.key[1],
                "value": along(each, "value"),
                "low": along(each, "low"),
                "high": along(each, "high"),
                "noise": noise if isfinite(noise := verdicts[each.key].findings.noise) else 0.0,
                "marks": marked(each),
            }
            for each in series
        ],
        "unit": short_unit(series[0].unit),
    }


def commit_values(
    series: Iterable[ChartSeries], verdicts: Mapping[Key, SeriesVerdict], commits: Sequence[Commit]
) -> list[list[list[Any]]]:
    """For each commit its figures: series, figure, then of the commit before in its series place
    and figure, the verdict on this one against that, and who may have made a change.

    A figure is [value, level, low, high], less the interval where there is none. Level: that of
    `verdicts_value`; None where there is no value.
    """
    rows: list[list[list[Any]]] = [[] for _ in commits]
    places = {commit.hash: place for place, commit in enumerate(commits)}
    for each in series:
        judged = verdicts[each.key]
        levels, _ = judged.levels()
        figures = {
            point.commit: _figure(point, levels.get(commits[point.commit].hash))
            for point in each.points
        }
        for point in each.points:
            commit = commits[point.commit].hash
            earlier = judged.before(commit)
            place = places[earlier] if earlier else -1
            word, suspects = judged.between(earlier, commit) if earlier else Between("missing")
            rows[point.commit].append(
                [
                    each.number,
                    figures[point.commit],
                    place,
                    figures.get(place),
                    word,
                    f"may be {one_of(suspects, 8)}" if len(suspects) > 1 else "",
                ]
            )
    return rows


def verdicts_value(
    series: Iterable[ChartSeries], verdicts: Mapping[Key, SeriesVerdict]
) -> dict[str, Any]:
    """What is said of each series: today, and between two of its levels, as numbers of words.

    Many series have the same table, so each stands there once.
    """
    words = list(LABELS)
    tables: dict[str, int] = {}
    rows = []
    for each in series:
        judged = verdicts[each.key]
        _, table = judged.levels()
        text = " ".join("".join(str(words.index(word)) for word in row) for row in table)
        rows.append([words.index(judged.word), tables.setdefault(text, len(tables))])
    return {
        "words": words,
        "labels": list(LABELS.values()),
        "tables": [text.split(" ") for text in tables],
        "series": rows,
    }


def _figure(point: ChartPoint, level: int | None) -> list[float | None]:
    ends = [_json(point.low), _json(point.high)]
    return [_json(point.value), level, *(ends if ends != [None, None] else [])]


def _json(value: float | None) -> float | None:
    """JSON has no infinity; the largest float compares as one."""
    if value is None or isfinite(value):
        return value
    return float_info.max if value > 0 else -float_info.max

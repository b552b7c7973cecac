"""From changes of series to one alert a commit."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from math import isfinite
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from harness.files import StoreError
from harness.tracking.asv.result_files import read_asv_result
from harness.tracking.by_commit import by_commit, reproduce_commands
from harness.tracking.changes import Verdicts
from harness.tracking.detect.change import Change
from harness.tracking.folders import subfolders
from harness.tracking.nightly.commits import subject
from harness.tracking.nightly.result import Alert, ChangedSeries, StepPoint, StepSide, Suspect
from harness.tracking.triage import Judged
from harness.tracking.verdict import SeriesVerdict

_SHOWN_DRIFTS = 5
_MOST_AROUND = 20
"""Commits on either side of a step that an alert keeps the values of."""

Told = Callable[[SeriesVerdict, Judged], ChangedSeries]


class Alerts(NamedTuple):
    """``notes``: sentences on what has no commit."""

    alerts: list[Alert]
    suspicious: list[ChangedSeries]
    notes: list[str]


class Where(NamedTuple):
    """What an alert tells of beside its figures: results, the checkout, asv's configuration."""

    results: Path
    root: Path
    config: Path


def alerts_of(verdicts: Verdicts, figures: pd.DataFrame, where: Where) -> Alerts:
    """What there is to tell of these verdicts."""
    rows = figures.drop_duplicates("series", keep="last")
    units = {str(s): str(u) for s, u in zip(rows["series"], rows["unit"], strict=True)}
    told = partial(_told, units=units)
    suspicious = [
        told(each, each.suspicion) for each in verdicts.values() if each.suspicion is not None
    ]
    dates = figures.groupby("commit", observed=True)["date"].max()
    found = sorted(_alerts(verdicts, told, where), key=lambda alert: dates[alert.commit])
    return Alerts(found[::-1], suspicious, _drifting(verdicts))


def _drifting(verdicts: Verdicts) -> list[str]:
    """What changes slowly; steps are alerts and a drift is none, so nobody else says it."""
    found = [
        f"{key[2]} ({each.findings.drift})" for key, each in verdicts.items() if each.findings.drift
    ]
    some = ", ".join(found[:_SHOWN_DRIFTS]) + (", …" if len(found) > _SHOWN_DRIFTS else "")
    series = "1 series drifts" if len(found) == 1 else f"{len(found)} series drift"
    return [f"{series} slowly, so no one commit is named: {some}."] if found else []


def _alerts(verdicts: Verdicts, told: Told, where: Where) -> Iterator[Alert]:
    for leader, members in by_commit(verdicts):
        ordered = sorted(
            ((told(each, judged), each, judged.change) for each, judged in members),
            key=lambda member: _by_size(member[0]),
        )
        changes = [each for each, _, _ in ordered]
        _, of, change = ordered[0]
        suspects = [
            Suspect(commit=commit, subject=subject(where.root, commit))
            for commit in leader.plausible
        ]
        likeliest = leader.plausible.index(leader.first_after)
        yield Alert(
            commit=leader.first_after,
            subject=suspects[likeliest].subject,
            last_before=leader.last_before,
            plausible=suspects,
            first_named=[] if leader.named == leader.plausible else list(leader.named),
            changes=changes,
            environment=_differences(where.results, {each.key[:2] for each, _ in members}, leader),
            command=reproduce_commands(
                where.root, where.config, leader, [each.series for each in changes]
            ),
            around=_around(of, change),
        )


def _around(of: SeriesVerdict, change: Change) -> list[StepPoint]:
    """The series' commits with a value near a step of it."""
    may_be = [of.places[commit] for commit in change.plausible]
    sides: dict[StepSide, list[StepPoint]] = {"before": [], "open": [], "after": []}
    for commit, place in of.places.items():
        side: StepSide = "before" if place < min(may_be) else "open"
        side = "after" if place >= max(may_be) else side
        point = of.series.points[place]
        known = point.interval if point.interval and all(map(isfinite, point.interval)) else None
        sides[side].append(StepPoint(commit=commit, value=point.value, interval=known, side=side))
    return [*sides["before"][-_MOST_AROUND:], *sides["open"], *sides["after"][:_MOST_AROUND]]


def _told(of: SeriesVerdict, judged: Judged, *, units: Mapping[str, str]) -> ChangedSeries:
    """A change with what a team has said of it."""
    key, change = of.key, judged.change
    is_number = all(map(isfinite, (change.ratio, *change.ci95)))
    return ChangedSeries(
        machine=key[0],
        environment=key[1],
        series=key[2],
        metric=change.metric,
        unit=units.get(key[2], ""),
        kind=of.series.kind,
        verdict=change.verdict,
        certainty=change.certainty,
        before=change.before,
        after=change.after,
        ratio=change.ratio if is_number else None,
        ci95=change.ci95 if is_number else None,
        status=judged.status,
        reason=judged.reason or judged.note,
        stands=of.word,
        is_regression=of.is_regression(judged),
    )


def _by_size(each: ChangedSeries) -> tuple[bool, bool, float]:
    ratio = each.ratio or 0.0
    return each.status != "open", each.verdict != "worse", -max(ratio, 1 / ratio if ratio else 1e9)


def _differences(results: Path, places: Iterable[tuple[str, str]], change: Change) -> list[str]:
    """What asv has noted of machine, interpreter and packages, where the two commits differ."""
    sentences = []
    for machine, environment in sorted(places):
        one, other = (
            _parameters(results, machine, environment, commit)
            for commit in (change.last_before, change.plausible[-1])
        )
        sentences += [
            f"{name} {one.get(name, 'none')} → {other.get(name, 'none')}"
            for name in sorted({*one, *other})
            if one and other and one.get(name) != other.get(name)
        ]
    return list(dict.fromkeys(sentences))


def _parameters(results: Path, machine: str, environment: str, commit: str) -> dict[str, object]:
    for folder in subfolders(results, []):
        try:
            file = read_asv_result(folder / f"{commit[:8]}-{environment}.json", machine)
        except StoreError:
            continue
        return file.params
    return {}

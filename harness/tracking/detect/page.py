"""All series of a page together: what they share on a night is the machine's, not a commit's.

Of each machine, environment and unit the common part of all benchmarks is taken out, then that of
the variants of each benchmark, which run one after another. A step of the former is told as the
machine's until a re-run of the commits has it too; one of the latter is left in.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from math import exp, log
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.statistics.mixture import FloatArray
from harness.tracking.detect.bounds import LATEST_NIGHTS
from harness.tracking.detect.change import Change, Findings, Rerun
from harness.tracking.detect.examine import examine
from harness.tracking.detect.page_past import certain_by_past, gains_of
from harness.tracking.detect.search import RECENT_NIGHTS
from harness.tracking.detect.series import Point, PointColumns, Series
from harness.tracking.detect.shared import LEAST_ROWS, Common, common
from harness.tracking.detect.weigh import StepLimits
from harness.tracking.detect.without_a_step import without_a_step

SeriesKey = tuple[str, str, str]
"""Machine, environment, series."""
EventKind = Literal["step", "night", "noise"]
"""step: all at once, and it has lasted. night: all at once on one night. noise: widely apart."""

LEAST_EVENT = 0.01
"""What all series share and is less is taken out and not told."""
NOISY = 1.5
"""Nights on which series lie so many times as far apart as usual count less, and are told."""
_LEAST_RERUN = 3
"""So many series must have been measured again to say what they share."""


class MachineEvent(NamedTuple):
    """What befell all series of a unit at once.

    ``ratio``: after / before; of noise how many times the usual. ``commits``: on which it may have
    begun, the oldest first; ``last_before`` the one before them. ``next_pair``: the two commits
    whose re-run tells it from a commit that changes all; None where there is nothing to tell.
    ``is_recent``: whether it became known in the last nights.
    """

    machine: str
    environment: str
    unit: str
    kind: EventKind
    benchmarks: int
    ratio: float
    last_before: str
    commits: tuple[str, ...]
    next_pair: tuple[str, str] | None
    representatives: tuple[SeriesKey, ...]
    is_recent: bool


class Page(NamedTuple):
    """Findings in the order of the series; what became known in the last seven nights."""

    findings: dict[SeriesKey, Findings]
    events: list[MachineEvent]


Reruns = Mapping[SeriesKey, Sequence[Rerun]]


def examine_page(
    all_series: Mapping[SeriesKey, Series],
    order: Sequence[str],
    reruns: Reruns,
    resets: Callable[[Series], Sequence[str]],
    look: Callable[[int, int], None] = lambda done, total: None,
) -> Page:
    """Every series, as `examine` has it; ``order``: all commits, the oldest first."""
    groups: dict[tuple[str, str, str], list[SeriesKey]] = {}
    for key, series in all_series.items():
        if series.kind == "timing" and _is_positive(series):
            groups.setdefault((*key[:2], series.unit), []).append(key)
    limits = StepLimits.of_page(sum(each.kind == "timing" for each in all_series.values()))
    without, events = dict[SeriesKey, _Without](), list[MachineEvent]()
    for place, keys in groups.items():
        table = _Table.of({key: all_series[key] for key in keys}, order)
        events += table.take_out(place, reruns, limits, without)
    own = {key: without.get(key, _Without(series, {})) for key, series in all_series.items()}
    at_once = {
        key: each.series
        for key, each in own.items()
        if not (each.limits_on or reruns.get(key) or resets(each.series))
    }
    gains = gains_of(at_once)
    clear = without_a_step(at_once, gains, limits)
    past = _limits_by_past(at_once, gains, order, limits)
    machine_steps = {
        place: frozenset(
            commit
            for event in events
            if (event.machine, event.environment, event.unit) == place and event.kind == "step"
            for commit in event.commits
        )
        for place in groups
    }
    found: dict[SeriesKey, Findings] = {}
    for key, (series, limits_on) in own.items():
        look(len(found), len(own))
        findings = clear.get(key) or examine(
            series,
            reruns.get(key, ()),
            resets(series),
            limits=limits,
            limits_on={**past(series), **limits_on},
        )
        begun = machine_steps.get((*key[:2], series.unit), frozenset())
        found[key] = replace(
            findings, changes=tuple(_of_machine(each, begun) for each in findings.changes)
        )
    return Page(found, [event for event in events if event.is_recent])


def _limits_by_past(
    all_series: Mapping[SeriesKey, Series],
    gains: Mapping[SeriesKey, FloatArray],
    order: Sequence[str],
    limits: StepLimits,
) -> Callable[[Series], dict[int, StepLimits]]:
    """What a step must gain at a series' points, by what the page has shown before."""
    if len(gains) < LEAST_ROWS:
        return lambda series: {}
    rank = {commit: n for n, commit in enumerate(order)}

    def nights(series: Series) -> NDArray[np.int64]:
        return np.array([rank[commit] for commit in PointColumns.of(series.points).commits], int)

    of_all = {key: nights(all_series[key]) for key in gains}
    needed = certain_by_past(gains, of_all, len(order), limits.certain)

    by_night = [limits._replace(certain=each) for each in needed.tolist()]

    def limits_of(series: Series) -> dict[int, StepLimits]:
        return {point: by_night[night] for point, night in enumerate(nights(series).tolist())}

    return limits_of


def _of_machine(change: Change, begun: Set[str]) -> Change:
    """What one series does when all do is the machine's too, until a re-run has it."""
    if change.certainty == "found" and not begun.isdisjoint(change.plausible):
        return replace(change, certainty="machine", next_pair=None)
    return change


class _Without(NamedTuple):
    """A series less what it shares, and the limits on points where that is seen to change."""

    series: Series
    limits_on: Mapping[int, StepLimits]


class _Table(NamedTuple):
    """Logarithms ``[series, nights]``, NaN where none; ``at``: the night of each point."""

    all_series: Mapping[SeriesKey, Series]
    nights: Sequence[str]
    values: FloatArray
    at: Mapping[SeriesKey, NDArray[np.int64]]

    @classmethod
    def of(cls, all_series: Mapping[SeriesKey, Series], order: Sequence[str]) -> "_Table":
        """A commit that was measured again is a night of its own."""
        rank = {commit: n for n, commit in enumerate(order)}
        # Most series were measured at the same commits.
        commits = {key: tuple(PointColumns.of(of.points).commits) for key, of in all_series.items()}
        named = {each: list(_named(each, rank)) for each in set(commits.values())}
        nights = sorted({night for each in named.values() for night in each})
        column = {night: n for n, night in enumerate(nights)}
        places = {
            each: np.array([column[night] for night in found]) for each, found in named.items()
        }
        at = {key: places[each] for key, each in commits.items()}
        values = np.full((len(all_series), len(nights)), np.nan)
        for row, (key, series) in enumerate(all_series.items()):
            values[row, at[key]] = np.log(PointColumns.of(series.points).values)
        return cls(all_series, [order[night[0]] for night in nights], values, at)

    def take_out(
        self,
        place: tuple[str, str, str],
        reruns: Reruns,
        limits: StepLimits,
        into: dict[SeriesKey, _Without],
    ) -> list[MachineEvent]:
        """Each series less what it shares ``into``; the machine's events."""
        keys = list(self.all_series)
        benchmarks: dict[str, list[int]] = {}
        for row, key in enumerate(keys):
            benchmarks.setdefault(key[2].partition("(")[0], []).append(row)
        votes = [np.array(rows) for rows in benchmarks.values()]
        off, weight = np.zeros_like(self.values), np.ones(len(self.nights))
        of_all, events = dict[int, StepLimits](), list[MachineEvent]()
        if len(votes) >= LEAST_ROWS:
            whole = common(self.values, votes)
            steps = self._steps(whole, [keys[vote[0]] for vote in votes], reruns, limits, {})
            confirmed = [each for each in steps if each.certainty == "confirmed"]
            off += whole.shrunk(self._levels(confirmed))
            weight = 1 / np.where(whole.noise > NOISY, whole.noise, 1.0)
            of_all = self._limits_on(confirmed, limits)
            representatives = tuple(keys[vote[0]] for vote in votes[:_LEAST_RERUN])
            events = list(_events(place, whole, steps, self.nights, len(votes), representatives))
        for vote in votes:
            limits_on = of_all
            if len(vote) >= LEAST_ROWS:
                alone = [np.array([n]) for n in range(len(vote))]
                shared = common(self.values[vote] - off[vote], alone)
                members = [keys[row] for row in vote]
                steps = self._steps(shared, members, reruns, limits, of_all)
                off[vote] += shared.shrunk(self._levels(steps))
                limits_on = of_all | self._limits_on(steps, limits)
            for row in vote:
                series, at = self.all_series[keys[row]], self.at[keys[row]]
                points = PointColumns.of(series.points)
                points = points.weighed(points.values * np.exp(-off[row, at]), weight[at])
                near = {n: limits_on[night] for n, night in enumerate(at) if night in limits_on}
                into[keys[row]] = _Without(replace(series, points=points), near)
        return events

    def _limits_on(self, changes: Sequence[Change], limits: StepLimits) -> dict[int, StepLimits]:
        """Nights on which what is seen of many may be seen of one, or must not be by itself."""
        found: dict[int, StepLimits] = {}
        for change in changes:
            if change.is_alert:
                until, of = change.found + LATEST_NIGHTS, limits.eased
            else:
                until, of = len(self.nights), limits.held
            found |= dict.fromkeys(range(change.place, until), of)
        return found

    def _steps(
        self,
        shared: Common,
        members: Sequence[SeriesKey],
        reruns: Reruns,
        limits: StepLimits,
        limits_on: Mapping[int, StepLimits],
    ) -> tuple[Change, ...]:
        """Those of a common part, by itself and by what its members' re-runs share.

        ``limits_on`` some nights stand for ``limits``.
        """
        points = tuple(map(Point, self.nights, np.exp(shared.part).tolist()))
        pooled = list(_pooled([run for key in members for run in reruns.get(key, ())]))
        series = Series(points, noise_floor=LEAST_EVENT)
        found = examine(series, pooled, limits=limits, limits_on=limits_on)
        return tuple(self._as_rerun(change, pooled) for change in found.changes)

    def _as_rerun(self, change: Change, pooled: Sequence[Rerun]) -> Change:
        """What the nights had found before it was measured again."""
        rise, said = log(change.ratio), list[float]()
        for run in pooled:
            if run.before in self.nights and run.after in self.nights:
                before, after = map(self.nights.index, (run.before, run.after))
                said += [log(run.ratio)] * (before < change.place <= after)
        if change.certainty != "found" or not said:
            return change
        has_it = sum(said) / len(said) / rise > 1 / 2
        return replace(change, certainty="confirmed" if has_it else "machine", next_pair=None)

    def _levels(self, changes: Sequence[Change]) -> FloatArray:
        levels = np.zeros(len(self.nights))
        for change in changes:
            levels[change.place :] += log(change.ratio)
        return levels


def _named(commits: Sequence[str], rank: Mapping[str, int]) -> Iterator[tuple[int, int]]:
    seen: dict[str, int] = {}
    for commit in commits:
        seen[commit] = seen.get(commit, -1) + 1
        yield rank[commit], seen[commit]


def _is_positive(series: Series) -> bool:
    values = PointColumns.of(series.points).values
    return bool(((values > 0) & (values < np.inf) | np.isnan(values)).all())


def _pooled(reruns: Sequence[Rerun]) -> Iterator[Rerun]:
    """What re-runs of several series at the same commits have in common."""
    pairs: dict[tuple[str, str, str], list[Rerun]] = {}
    for run in reruns:
        pairs.setdefault((run.before, run.after, run.newest), []).append(run)
    for (before, after, newest), runs in pairs.items():
        if len(runs) >= _LEAST_RERUN:
            low, ratio, high = np.median(
                [(run.ci95[0], run.ratio, run.ci95[1]) for run in runs], axis=0
            ).tolist()
            yield Rerun(before, after, ratio, (low, high), newest)


def _events(
    place: tuple[str, str, str],
    whole: Common,
    steps: Sequence[Change],
    nights: Sequence[str],
    benchmarks: int,
    representatives: tuple[SeriesKey, ...],
) -> Iterator[MachineEvent]:
    """Steps of all nights, and what else befell the last ones.

    What a re-run has confirmed is no machine's.
    """
    recent = max(len(nights) - RECENT_NIGHTS, 0)
    level = np.zeros(len(nights))
    for change in steps:
        level[change.place :] += log(change.ratio)
        if change.certainty != "confirmed":
            pair = change.next_pair or (
                None
                if change.certainty == "machine"
                else (change.last_before, nights[change.found])
            )
            yield MachineEvent(
                *place,
                "step",
                benchmarks,
                change.ratio,
                change.last_before,
                change.plausible,
                pair,
                representatives,
                change.found >= recent,
            )
    apart = np.nan_to_num(whole.part - level)
    for n in range(max(recent, 1), len(nights)):
        if abs(apart[n]) >= max(LEAST_EVENT, 3 * whole.error[n]):
            yield MachineEvent(
                *place,
                "night",
                benchmarks,
                exp(apart[n]),
                nights[n - 1],
                (nights[n],),
                None,
                (),
                True,
            )
    noisy = [n for n in range(max(recent, 1), len(nights)) if whole.noise[n] > NOISY]
    if noisy:
        ratio = float(np.median(whole.noise[noisy]))
        commits = tuple(nights[n] for n in noisy)
        yield MachineEvent(
            *place, "noise", benchmarks, ratio, nights[noisy[0] - 1], commits, None, (), True
        )

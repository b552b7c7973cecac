"""How often do many real series name a commit that cannot be it, and is a true change still found?

The commits of a real asv history are shuffled whole, so that no commit can be the cause of what a
night shows and each night keeps what its series share. A regression there is false. Then a step is
put into one series, all of a module, or all, 15 nights before the end, and each night measures
again what `gcbench nightly` would: four pairs of commits at most, answered by the truth and an
error of 1.5 %.

    git clone --depth 1 https://github.com/pv/scipy-bench
    python -m benchmarks.shuffled_histories scipy-bench/results --machine i7
    pip install --no-deps --target /tmp/otava apache-otava==0.8.0
    python -m benchmarks.shuffled_histories … --detectors page,alone,asv,otava --otava /tmp/otava

``page``: all of them together. ``alone``: each series by itself, as before there were pages.
``asv`` and ``otava`` as `benchmarks.detectors` has them, without re-runs. The last line of output
is one JSON document.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.detectors import asv_places, otava_places
from harness.tracking.detect.change import Change, Findings, Rerun
from harness.tracking.detect.examine import examine
from harness.tracking.detect.from_figures import commits_in_order, series_of
from harness.tracking.detect.page import Page, examine_page
from harness.tracking.detect.search import PER_NIGHT
from harness.tracking.detect.series import Series
from harness.tracking.history import load_history
from harness.tracking.nightly.measure_again import suspicions
from harness.tracking.reruns import StoredRerun, by_series
from harness.tracking.triage import NOTHING_SAID
from harness.tracking.verdict import Key, SeriesVerdict, judge

NEAR, WITHIN, BEFORE_END = 3, (1, 3), 15
RERUN_SD = 0.015
ONES = 10
"""Series that get a step of their own at once, each of another benchmark."""

Histories = Mapping[Key, Series]
Detector = Callable[[Histories, Sequence[str], Mapping[Key, Sequence[Rerun]]], Page]


def alone(histories: Histories, order: Sequence[str], reruns: Mapping[Key, Any]) -> Page:
    """Each series by itself."""
    found = {key: examine(each, reruns.get(key, ())) for key, each in histories.items()}
    return Page(found, [])


def together(histories: Histories, order: Sequence[str], reruns: Mapping[Key, Any]) -> Page:
    """All of them."""
    return examine_page(histories, order, reruns, lambda series: ())


def by_places(places: Callable[[list[float]], Sequence[int]]) -> Detector:
    """A detector of whole series; what it finds is said to be found at its place."""

    def detect(histories: Histories, order: Sequence[str], reruns: Mapping[Key, Any]) -> Page:
        return Page(
            {key: Findings(True, tuple(told(s)), 1, 0, ()) for key, s in histories.items()}, []
        )

    def told(series: Series) -> Iterator[Change]:
        values = [point.value for point in series.points]
        for place in places(values):
            before, after = np.median(values[:place]), np.median(values[place:])
            if place and after > before:
                one, other = (series.points[n].commit for n in (place - 1, place))
                yield Change(
                    *(series.name, series.metric, one, other, place, place),
                    *((other,), (other,), None),
                    *(float(before), float(after), after / before, (1.0, 2.0), 0.0),
                    *("worse", "found"),
                )

    return detect


DETECTORS: dict[str, Detector] = {
    "page": together,
    "alone": alone,
    "asv": by_places(asv_places),
    "otava": by_places(otava_places),
}


def read(folder: Path, machine: str, commits: int, variants: int) -> Histories:
    """The newest commits of a machine's last environment; the first variants of each benchmark."""
    figures = load_history(folder).figures
    figures = figures[figures["machine"] == machine]
    last = figures["environment"].iloc[-1]
    figures = figures[(figures["environment"] == last) & (figures["outcome"] == "measured")]
    kept = commits_in_order(figures)[-commits:]
    figures = figures[figures["commit"].isin(kept)]
    number: dict[str, int] = {}
    found: dict[Key, Series] = {}
    for key, series in series_of(figures).items():
        name = key[2].partition("(")[0]
        if (
            len({point.commit for point in series.points}) < commits
            or number.get(name, 0) == variants
        ):
            continue
        number[name] = number.get(name, 0) + 1
        found[key] = series
    return found


def shuffled(histories: Histories, rng: np.random.Generator) -> tuple[dict[Key, Series], list[str]]:
    """The same nights in another order, and the commits' names in it."""
    order = [point.commit for point in next(iter(histories.values())).points]
    mixed = [order[place] for place in rng.permutation(len(order))]
    made = {}
    for key, series in histories.items():
        of = {point.commit: point for point in series.points}
        made[key] = replace(series, points=tuple(of[commit] for commit in mixed))
    return made, mixed


def judged(histories: Histories, page: Page) -> dict[Key, SeriesVerdict]:
    """The verdicts of the last night."""
    return {
        key: judge(series, page.findings[key], NOTHING_SAID, date(2026, 1, 1), key=key)
        for key, series in histories.items()
    }


class Planted(NamedTuple):
    """Histories with a step of ``size`` from the night ``place`` on in the series ``keys``."""

    histories: dict[Key, Series]
    order: list[str]
    keys: frozenset[Key]
    size: float
    place: int

    @classmethod
    def into(
        cls, made: Histories, order: list[str], keys: frozenset[Key], size: float
    ) -> "Planted":
        """A step ``BEFORE_END`` nights before the end."""
        place, histories = len(order) - BEFORE_END, dict(made)
        for key in keys:
            points = [
                point._replace(value=point.value * (1 + size * (n >= place)))
                for n, point in enumerate(made[key].points)
            ]
            histories[key] = replace(made[key], points=tuple(points))
        return cls(histories, order, keys, size, place)

    def until(self, nights: int) -> dict[Key, Series]:
        """As they stand on a night."""
        return {key: replace(s, points=s.points[:nights]) for key, s in self.histories.items()}

    def answers(
        self,
        verdicts: Mapping[Key, SeriesVerdict],
        page: Page,
        known: Sequence[StoredRerun],
        rng: np.random.Generator,
    ) -> Iterator[StoredRerun]:
        """What a night would measure again, and the truth with an error."""
        machine = next(iter(self.histories))[0]
        for pair in suspicions(verdicts, machine, known, page.events)[:PER_NIGHT]:
            one, other = self.order.index(pair.before), self.order.index(pair.after)
            for key in sorted(pair.keys):
                crossed = key in self.keys and one < self.place <= other
                log = crossed * np.log1p(self.size) + RERUN_SD * rng.standard_normal()
                low, ratio, high = np.exp(log + np.array([-1.96, 0, 1.96]) * RERUN_SD).tolist()
                yield StoredRerun(
                    machine=key[0],
                    environment=key[1],
                    series=key[2],
                    before=pair.before,
                    after=pair.after,
                    newest=pair.newest,
                    ratio=ratio,
                    ci95=(low, high),
                    rounds=5,
                )

    def found(self, detector: Detector, rng: np.random.Generator) -> tuple[dict[int, float], int]:
        """Share of the series in which it is told after so many nights; others that are worse."""
        known, share, others = list[StoredRerun](), dict[int, float](), 0
        for night in range(1, max(WITHIN) + 1):
            histories = self.until(self.place + night)
            page = detector(histories, self.order, by_series(known))
            known += self.answers(judged(histories, page), page, known, rng)
            page = detector(histories, self.order, by_series(known))
            told = {key for key in self.keys if self._is_told(page, key)}
            if night in WITHIN:
                share[night] = len(told) / len(self.keys)
            verdicts = judged(histories, page)
            others = sum(v.has_regression for k, v in verdicts.items() if k not in self.keys)
        return share, others

    def _is_told(self, page: Page, key: Key) -> bool:
        return any(
            change.is_alert and change.verdict == "worse" and abs(change.place - self.place) <= NEAR
            for change in page.findings[key].changes
        )


def scopes(histories: Histories, rng: np.random.Generator) -> dict[str, frozenset[Key]]:
    """Which series get a step."""
    first = {key[2].partition("(")[0]: key for key in histories}
    ones = rng.permutation(len(first))[:ONES]
    modules = sorted({key[2].partition(".")[0] for key in histories})
    large = [
        module for module in modules if sum(k[2].partition(".")[0] == module for k in histories) > 9
    ] or modules
    module = large[int(rng.integers(len(large)))]
    return {
        "one series": frozenset(list(first.values())[n] for n in ones),
        "a module": frozenset(key for key in histories if key[2].partition(".")[0] == module),
        "all": frozenset(histories),
    }


def main() -> None:
    """Shuffle, plant and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--machine", required=True)
    parser.add_argument("--commits", type=int, default=60)
    parser.add_argument("--variants", type=int, default=6)
    parser.add_argument("--shuffles", type=int, default=50)
    parser.add_argument("--planted", type=int, default=5)
    parser.add_argument("--detectors", default="page,alone")
    parser.add_argument("--otava", default="", help="a folder that holds apache-otava")
    asked = parser.parse_args()
    sys.path[:0] = [asked.otava] if asked.otava else []
    detectors = {name: DETECTORS[name] for name in asked.detectors.split(",")}
    histories = read(asked.results, asked.machine, asked.commits, asked.variants)
    print(f"{len(histories)} series, {asked.commits} commits", flush=True)
    rows = []
    for name, detector in detectors.items():
        regressions, suspicious, alarms = list[int](), list[int](), list[int]()
        for seed in range(asked.shuffles):
            made, order = shuffled(histories, np.random.default_rng([1, seed]))
            page = detector(made, order, {})
            verdicts = judged(made, page).values()
            regressions.append(sum(each.has_regression for each in verdicts))
            suspicious.append(sum(each.word == "suspicious" for each in verdicts))
            nights = {
                change.found
                for each in verdicts
                for change in each.findings.changes
                if change.is_alert
                and change.verdict == "worse"
                and change.found >= asked.commits - 30
            }
            alarms.append(len(nights))
        row = {
            "detector": name,
            "shuffles_with_regression": sum(map(bool, regressions)),
            "regressions": regressions,
            "suspicious": suspicious,
            "nights_with_false_regression_of_30": alarms,
        }
        rows.append(row)
        print(
            f"{name:6} a regression on {row['shuffles_with_regression']} of {asked.shuffles}, "
            f"suspicious {np.median(suspicious):g} a night (median; to {max(suspicious)}), "
            f"nights of 30 with a false regression {np.mean(alarms):.2f}",
            flush=True,
        )
    planted = []
    for scope in ("one series", "a module", "all") if asked.planted else ():
        for size in (0.03, 0.08):
            for name, detector in detectors.items():
                results = []
                for seed in range(asked.planted):
                    rng = np.random.default_rng([2, seed])
                    made, order = shuffled(histories, rng)
                    keys = scopes(histories, rng)[scope]
                    results.append(Planted.into(made, order, keys, size).found(detector, rng))
                shares = {n: float(np.mean([share[n] for share, _ in results])) for n in WITHIN}
                events = {n: sum(share[n] > 0 for share, _ in results) for n in WITHIN}
                others = float(np.mean([other for _, other in results]))
                planted.append(
                    {
                        "scope": scope,
                        "size": size,
                        "detector": name,
                        "found": shares,
                        "any": events,
                        "others": others,
                    }
                )
                print(
                    f"{scope:10} {size:+.0%} {name:6}"
                    + "".join(
                        f" within {n}: {shares[n]:.0%} of series, {events[n]} of {asked.planted}"
                        for n in WITHIN
                    )
                    + f"; others worse {others:.1f}",
                    flush=True,
                )
    print(json.dumps({"series": len(histories), "rows": rows, "planted": planted}))


if __name__ == "__main__":
    main()

"""How soon is a step in a nightly history found, and how often is one that is none?

Histories of 60 nights with 1, 3 and 5 % noise, with and without 5 % of the nights slow by 5 to
30 %; a step of 4, 8 or 15 % after 20 to 45 nights, or none. Each detector is asked every night
from the eighth on. An alert within three nights of the true place finds the step; in a history
without one, any alert on any night is false.

    python -m benchmarks.detectors
    pip install --no-deps --target /tmp/otava apache-otava==0.8.0
    python -m benchmarks.detectors --otava /tmp/otava

``oracle`` is no detector: a CUSUM that is told level, noise, kind of accidents and size of the
step, with the threshold that makes 2 % of the very same quiet histories false. The last line of
output is one JSON document.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from harness.tracking.detect.examine import examine
from harness.tracking.detect.series import Series
from harness.tracking.detect.simulate import Noise, SimulatedHistory, rerun_of, simulated_history

NIGHTS, FIRST = 60, 8
WITHIN = (1, 2, 3, 4, 5, 7, 10)
NEAR = 3
RERUN_SD = 0.015

Alerts = list[tuple[int, int]]
"""(night, place) of each."""
Detector = Callable[[SimulatedHistory, np.random.Generator], Alerts]


def alone(made: SimulatedHistory, rng: np.random.Generator) -> Alerts:
    """gcbench, by the nights alone."""
    found = examine(Series.of(made.values.tolist())).changes
    return [(change.found, change.place) for change in found if change.is_alert]


class Confirmed:
    """gcbench, with a re-run of each suspicion; counts them."""

    reruns = 0

    def __call__(self, made: SimulatedHistory, rng: np.random.Generator) -> Alerts:
        """As `alone`."""
        answer = rerun_of(made, rng, RERUN_SD)

        def ask(before: str, after: str) -> Any:
            self.reruns += 1
            return answer(before, after)

        found = examine(Series.of(made.values.tolist()), ask=ask).changes
        return [(change.found, change.place) for change in found if change.is_alert]


def by_prefix(places: Callable[[list[float]], Sequence[int]]) -> Detector:
    """A detector of whole series, asked again each night."""

    def alerts(made: SimulatedHistory, rng: np.random.Generator) -> Alerts:
        # Before the step, a history with one is as any other; those are counted elsewhere.
        first = FIRST if made.step == 0 else made.place + 1
        last = NIGHTS if made.step == 0 else min(NIGHTS, made.place + max(WITHIN))
        values = made.values.tolist()
        return [(n - 1, place) for n in range(first, last + 1) for place in places(values[:n])]

    return alerts


def asv_places(values: list[float]) -> Sequence[int]:
    """asv's steps and its rule for regressions, with asv publish's threshold of 5 %."""
    from asv.step_detect import detect_regressions, detect_steps

    _, _, found = detect_regressions(detect_steps(values), threshold=0.05)
    return [after for _, after, *_ in found or []]


def otava_places(values: list[float]) -> Sequence[int]:
    """apache-otava with its defaults: windows of 50, p < 0.001."""
    from otava.analysis import compute_change_points

    found, _ = compute_change_points(values, window_len=50, max_pvalue=0.001, min_magnitude=0.0)
    return [change.index for change in found]


def cusum(made: SimulatedHistory, noise: Noise, step: float) -> np.ndarray:
    """The oracle's statistic, the larger of both directions, on each night."""
    size = np.log1p(step)
    logs = np.log(made.values)

    def density(x: np.ndarray) -> np.ndarray:
        slow = np.log(np.linspace(1.05, 1.30, 101))
        normal = np.exp(-((x[..., None] - np.append(slow, 0.0)) ** 2) / (2 * noise.sd**2))
        share = noise.slow_share
        return (1 - share) * normal[..., -1] + share * normal[..., :-1].mean(-1) + 1e-300

    quiet = np.log(density(logs))
    best = np.zeros(len(logs))
    for sign in (1, -1):
        total = 0.0
        for night, gain in enumerate(np.log(density(logs - sign * size)) - quiet):
            total = max(total, 0.0) + gain
            best[night] = max(best[night], total)
    return best


def histories(noise: Noise, step: float, count: int, seed: int) -> list[SimulatedHistory]:
    """Seeded ones; the place of the step is drawn too."""
    rng = np.random.default_rng([seed, round(1e4 * noise.sd), round(1e4 * noise.slow_share)])
    made = []
    for _ in range(count):
        place = int(rng.integers(20, 46))
        made.append(simulated_history(rng, noise, NIGHTS, place if step else NIGHTS, step))
    return made


def power(delays: list[float]) -> dict[int, float]:
    """Share found within so many nights."""
    return {n: float(np.mean([delay <= n for delay in delays])) for n in WITHIN}


def delay(alerts: Alerts, place: int) -> float:
    """Nights from the step to the first alert that is near it."""
    return min(
        (night - place + 1 for night, at in alerts if night >= place and abs(at - place) <= NEAR),
        default=float("inf"),
    )


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quiet-histories", type=int, default=1000)
    parser.add_argument("--histories", type=int, default=400)
    parser.add_argument("--otava", default="", help="a folder that holds apache-otava")
    asked = parser.parse_args()
    confirmed = Confirmed()
    detectors: dict[str, Detector] = {"alone": alone, "with re-run": confirmed}
    detectors["asv"] = by_prefix(asv_places)
    if asked.otava:
        sys.path.append(asked.otava)
        detectors["otava"] = by_prefix(otava_places)
    rows = []
    print(
        f"{'noise':>6}{'slow':>6} {'detector':12}{'false':>7}{'at end':>7}{'re-runs':>8}"
        f"{'step':>6}" + "".join(f"{n:>7}" for n in WITHIN)
    )
    for noise in (Noise(sd, slow) for sd in (0.03, 0.01, 0.05) for slow in (0.0, 0.05)):
        quiet = histories(noise, 0.0, asked.quiet_histories, 1)
        stepped = {step: histories(noise, step, asked.histories, 2) for step in (0.04, 0.08, 0.15)}
        names = [*detectors, "oracle"]
        for name in names:
            rng = np.random.default_rng(3)
            few = 5 if name in ("asv", "otava") else 1
            row: dict[str, Any] = {"noise": noise.sd, "slow": noise.slow_share, "detector": name}
            row["found"] = {}
            if name == "oracle":
                row |= {"false": 0.02, "at_end": None}
                for step, made in stepped.items():
                    limit = np.quantile([cusum(of, noise, step).max() for of in quiet], 0.98)
                    row["found"][step] = power(
                        [
                            1.0
                            + next(
                                (
                                    n
                                    for n, at in enumerate(cusum(of, noise, step)[of.place :])
                                    if at > limit
                                ),
                                np.inf,
                            )
                            for of in made
                        ]
                    )
            else:
                confirmed.reruns = 0
                alerts = [detectors[name](of, rng) for of in quiet[::few]]
                row["false"] = float(np.mean([bool(each) for each in alerts]))
                row["at_end"] = float(
                    np.mean([any(night == NIGHTS - 1 for night, _ in each) for each in alerts])
                )
                if name == "with re-run":
                    row["reruns"] = confirmed.reruns / len(alerts)
                for step, made in stepped.items():
                    row["found"][step] = power(
                        [delay(detectors[name](of, rng), of.place) for of in made[::few]]
                    )
            _print(row)
            rows.append(row)
    print(json.dumps({"rerun_sd": RERUN_SD, "rows": rows}))


def _print(row: dict[str, Any]) -> None:
    whole = "" if row["detector"] not in ("asv", "otava") else f"{row['at_end']:.1%}"
    start = (
        f"{row['noise']:>6.0%}{row['slow']:>6.0%} {row['detector']:12}{row['false']:>7.1%}"
        f"{whole:>7}{row.get('reruns', 0):>8.1f}"
    )
    for step, found in row["found"].items():
        print(
            start + f"{step:>6.0%}" + "".join(f"{share:>7.1%}" for share in found.values()),
            flush=True,
        )
        start = " " * len(start)


if __name__ == "__main__":
    main()

"""Is the right commit in the range that an alert names, and how wide is that range?

Histories of 60 nights with 3 % noise, 5 % of the nights slow by 5 to 30 %, and a step of 2, 3, 5
or 10 times the noise after 20 to 45 nights, or none. A re-run is what `gcbench nightly` makes:
five pairs of processes, each pair as noisy as a night is, each process slow as often as a night.

    python -m benchmarks.culprits

An alert within 14 nights of the step is its own. *right*: its range held the commit on the night
it was found; *right later*: by the last night. The last line of output is one JSON document.
"""

import argparse
import json
from typing import Any

import numpy as np

from harness.statistics.paired_ratio import paired_ratio
from harness.tracking.detect.change import Change, Rerun
from harness.tracking.detect.examine import examine
from harness.tracking.detect.series import Series
from harness.tracking.detect.simulate import Noise, SimulatedHistory, simulated_history

NIGHTS, WITHIN, ROUNDS = 60, 14, 5
WIDTHS = (2, 3, 5, 10)


class Reruns:
    """Answers as five pairs of processes would, and counts."""

    def __init__(self, made: SimulatedHistory, noise: Noise, rng: np.random.Generator) -> None:
        self.made, self.noise, self.rng, self.count = made, noise, rng, 0

    def __call__(self, before: str, after: str) -> Rerun:
        """As `harness.tracking.detect.timing.AskRerun`."""
        self.count += 1
        each = Noise(self.noise.sd / 2**0.5, self.noise.slow_share)
        one, other = (
            simulated_history(self.rng, each, ROUNDS, ROUNDS, 0.0).values for _ in range(2)
        )
        crossed = int(before) < self.made.place <= int(after)
        ratio = paired_ratio(one, other * (1 + crossed * self.made.step))
        return Rerun(before, after, ratio.ratio, ratio.ci95)


def alerts(made: SimulatedHistory, ask: Reruns | None) -> list[Change]:
    """All of a history."""
    found = examine(Series.of(made.values.tolist()), ask=ask).changes
    return [change for change in found if change.is_alert]


def measure(noise: Noise, width: int, count: int, with_reruns: bool) -> dict[str, Any]:
    """A row of the table; ``width`` 0: histories without a step."""
    rows, false, asked = list[tuple[int, int, bool, int, bool]](), 0, 0
    step = float(np.expm1(width * noise.sd))
    for seed in range(count):
        rng = np.random.default_rng([seed, width, with_reruns])
        place = int(rng.integers(20, 46)) if width else NIGHTS
        made = simulated_history(rng, noise, NIGHTS, place, step)
        ask = Reruns(made, noise, rng) if with_reruns else None
        found = alerts(made, ask)
        asked += ask.count if ask else 0
        false += sum(change.found < place for change in found)
        own = [change for change in found if place <= change.found < place + WITHIN]
        for change in own[:1]:
            rows.append(
                (
                    change.found - place + 1,
                    len(change.named),
                    str(place) in change.named,
                    len(change.plausible),
                    str(place) in change.plausible,
                )
            )
    delays, *ranges = np.array(rows).T if rows else np.zeros((5, 0))
    row = {"reruns": with_reruns, "width": width, "histories": count, "rerun_count": asked / count}
    row |= {"found": len(rows) / count, "false": false / count}
    if rows:
        row |= {"delay": [float(np.median(delays)), float(np.quantile(delays, 0.95))]}
        for name, (widths, right) in (("", ranges[:2]), ("_later", ranges[2:])):
            row |= {
                f"right{name}": float(right.mean()),
                f"wrong{name}": int((right == 0).sum()),
                f"range{name}": [float(np.median(widths)), float(np.quantile(widths, 0.95))],
                f"two{name}": float((widths <= 2).mean()),
            }
    return row


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--histories", type=int, default=1000)
    parser.add_argument("--sd", type=float, default=0.03)
    parser.add_argument("--slow", type=float, default=0.05)
    asked = parser.parse_args()
    noise, rows = Noise(asked.sd, asked.slow), []
    for with_reruns in (False, True):
        for width in (0, *WIDTHS):
            row = measure(noise, width, asked.histories, with_reruns)
            rows.append(row)
            print(_words(row), flush=True)
    print(json.dumps({"sd": noise.sd, "slow": noise.slow_share, "rows": rows}))


def _words(row: dict[str, Any]) -> str:
    words = (
        f"{'re-runs' if row['reruns'] else 'nights':8}{row['width']:>3} found "
        f"{row['found']:6.1%} false {row['false']:.3f} re-runs {row['rerun_count']:.1f}"
    )
    if "delay" in row:
        words += f" delay {row['delay'][0]:.0f}, {row['delay'][1]:.0f}"
        for name in ("", "_later"):
            words += (
                f" | right {row['right' + name]:6.1%} range {row['range' + name][0]:.0f}, "
                f"{row['range' + name][1]:.0f} at most 2: {row['two' + name]:.1%}"
            )
    return words


if __name__ == "__main__":
    main()

"""Is what befalls a machine told as the machine's, and is no commit blamed for it?

60 benchmarks over 60 nights, each with noise of 1 to 3 % and 5 % of its nights slow by 5 to 30 %.
Five nights before the end something befalls the machine:

frequency   all are slower or faster by 2 to 8 %, alike
kernel      by 2 to 8 % in the mean, each by 1.5 % more or less (standard deviation)
compiler    the same, each by 3 % more or less
noisy       for five nights all are 3 times as noisy
nothing     nothing

    python -m benchmarks.machine_events

*Told*: an event of the right kind names the night within one (of nothing: there is none). *Blamed*:
a series has a regression. The last line of output is one JSON document.
"""

import argparse
import json
from datetime import date
from typing import NamedTuple

import numpy as np

from harness.statistics.mixture import FloatArray
from harness.tracking.detect.page import EventKind, Page, examine_page
from harness.tracking.detect.series import Series
from harness.tracking.detect.simulate import Noise, simulated_history
from harness.tracking.triage import NOTHING_SAID
from harness.tracking.verdict import judge

NIGHTS, BENCHMARKS, AGO = 60, 60, 5


class Kind(NamedTuple):
    """What all change by is drawn from ``rises``, of either sign; ``apart``: how far from alike."""

    told: EventKind | None
    rises: tuple[float, float] = (0.0, 0.0)
    apart: float = 0.0
    noise: float = 1.0


KINDS = {
    "frequency": Kind("step", (0.02, 0.08)),
    "kernel": Kind("step", (0.02, 0.08), 0.015),
    "compiler": Kind("step", (0.02, 0.08), 0.03),
    "noisy": Kind("noise", noise=3.0),
    "nothing": Kind(None),
}


def nights(kind: Kind, rng: np.random.Generator) -> FloatArray:
    """Logarithms ``[benchmarks, nights]``."""
    logs = np.empty((BENCHMARKS, NIGHTS))
    rise = rng.choice([-1, 1]) * rng.uniform(*kind.rises)
    for row in logs:
        noise = Noise(rng.uniform(0.01, 0.03), 0.05)
        row[:] = np.log(simulated_history(rng, noise, NIGHTS, NIGHTS, 0.0).values)
        row[-AGO:] = kind.noise * row[-AGO:] + rise + kind.apart * rng.standard_normal()
    return logs


def page_of(logs: FloatArray) -> tuple[dict[tuple[str, str, str], Series], Page]:
    """All benchmarks, as a night without re-runs sees them; commits are numbers."""
    series = {
        ("box", "py3.13", f"suite.time_{n}"): Series.of(np.exp(row).tolist())
        for n, row in enumerate(logs)
    }
    order = [str(n) for n in range(NIGHTS)]
    return series, examine_page(series, order, {}, lambda series: ())


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--histories", type=int, default=200)
    asked = parser.parse_args()
    near = {str(n) for n in range(NIGHTS - AGO - 1, NIGHTS - AGO + 2)}
    rows = []
    for name, kind in KINDS.items():
        told = blamed = 0
        for seed in range(asked.histories):
            rng = np.random.default_rng([3, list(KINDS).index(name), seed])
            series, page = page_of(nights(kind, rng))
            events = [e for e in page.events if e.kind == kind.told and near & {*e.commits}]
            told += bool(events) if kind.told else not page.events
            blamed += any(
                judge(each, page.findings[key], NOTHING_SAID, date(2026, 1, 1)).has_regression
                for key, each in series.items()
            )
        row = {"befalls": name, "told": told / asked.histories, "blamed": blamed / asked.histories}
        rows.append(row)
        print(f"{name:10} told {row['told']:.1%}, a commit blamed {row['blamed']:.1%}", flush=True)
    print(json.dumps({"histories": asked.histories, "rows": rows}))


if __name__ == "__main__":
    main()

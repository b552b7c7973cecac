"""How the watch itself stands, by machine and environment: how old, how noisy, what is missing."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from math import isfinite
from statistics import median
from typing import NamedTuple

import pandas as pd

from harness import format as fmt
from harness.tracking.verdict import Key, SeriesVerdict

OLD = timedelta(hours=36)
"""Figures older than that were not measured last night."""


class Standing(NamedTuple):
    """``age``: of the newest figure when the site was built, in words; ``is_old``: over 36 hours;
    ``is_behind``: another machine or environment has figures that are newer by as much.
    ``stale``: how many of the ``series`` were not measured at the newest commit. ``noise``: of the
    median timing, in words; "" without timings.
    """

    machine: str
    environment: str
    age: str
    is_old: bool
    is_behind: bool
    series: int
    stale: int
    noise: str


def standings(
    figures: pd.DataFrame, verdicts: Mapping[Key, SeriesVerdict], now: datetime
) -> list[Standing]:
    """One for each machine and environment that has current figures, the newest first."""
    current = figures[figures["is_current"]] if len(figures) else figures
    found, ages = [], dict[tuple[object, object], timedelta]()
    for (machine, environment), rows in current.groupby(
        ["machine", "environment"], observed=True, sort=False
    ):
        measured = rows["measured"].max()
        ages[machine, environment] = now - (rows["date"].max() if pd.isna(measured) else measured)
    for (machine, environment), age in sorted(ages.items(), key=lambda pair: pair[1]):
        judged = [each for key, each in verdicts.items() if key[:2] == (machine, environment)]
        found.append(
            Standing(
                str(machine),
                str(environment),
                age_words(age),
                age > OLD,
                age - min(ages.values()) > OLD,
                len(judged),
                sum(each.is_stale for each in judged),
                _noise(judged),
            )
        )
    return found


def _noise(judged: list[SeriesVerdict]) -> str:
    timings = [
        each.findings.noise
        for each in judged
        if each.series.kind == "timing" and isfinite(each.findings.noise)
    ]
    return f"±{fmt.percent(median(timings))}" if timings else ""


def all_old(found: Sequence[Standing]) -> bool:
    """Whether no machine has measured anything of late."""
    return bool(found) and all(each.is_old for each in found)


def age_words(age: timedelta) -> str:
    """As "3 hours", "12 days" or "4 years"; "under an hour" where it is younger, or to come."""
    hours = int(age.total_seconds() // 3600)
    if hours < 1:
        return "under an hour"
    number, unit = (hours, "hour") if hours < 48 else (hours // 24, "day")
    if number >= 730 and unit == "day":
        number, unit = number // 365, "year"
    return f"{number:,} {unit}{'' if number == 1 else 's'}"

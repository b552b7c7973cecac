"""Series of current figures: one line of values across commits each, with all that judges it."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dashboards.content.commits import Commit
from dashboards.names import Names
from harness import format as fmt
from harness.tracking.frames import SERIES, parameters_by_series
from harness.tracking.verdict import Key

Reading = float | None


class ChartPoint(NamedTuple):
    """``commit``: its place among all commits. ``value`` is None where there was none."""

    commit: int
    value: Reading
    low: Reading
    high: Reading


class ChartSeries(NamedTuple):
    """``page``: that of its benchmark. ``params``: as a person reads them, by name."""

    number: int
    key: Key
    page: str
    suite: str
    metric: str
    unit: str
    direction: str
    kind: str
    noise_floor: float
    least_change: float
    params: dict[str, str]
    points: list[ChartPoint]

    @property
    def title(self) -> str:
        """Metric and parameters in a line."""
        return " · ".join((self.metric, *self.params.values()))

    @property
    def label(self) -> str:
        """Its parameters, or its metric where it has none."""
        return " · ".join(self.params.values()) or self.metric

    @property
    def values(self) -> list[float]:
        """Those that are."""
        return [point.value for point in self.points if point.value is not None]

    @property
    def plain_unit(self) -> str:
        """Its unit, where that does not go with each value as seconds and bytes do."""
        return fmt.plain_unit(fmt.short_unit(self.unit))

    def bare(self, value: Reading) -> str:
        """A value in words, less a plain unit."""
        return fmt.bare(value, fmt.short_unit(self.unit))

    def shown(self, value: Reading) -> str:
        """A value in words."""
        return fmt.with_unit(value, fmt.short_unit(self.unit)).strip()


def all_series(
    figures: pd.DataFrame, parameters: pd.DataFrame, commits: list[Commit]
) -> list[ChartSeries]:
    """Current figures by series, in the order of benchmarks and their parameters."""
    current = figures[figures["is_current"]].sort_values(["date", "measured"], kind="stable")
    current = current.drop_duplicates([*SERIES, "commit"], keep="last")
    names, places = Names(), {commit.hash: place for place, commit in enumerate(commits)}
    of = parameters_by_series(parameters)
    return [
        _series(number, key, rows, of[key[2]], names=names, places=places)
        for number, (key, rows) in enumerate(_groups(current))
    ]


def _groups(current: pd.DataFrame) -> Iterator[tuple[Key, pd.DataFrame]]:
    by = ["benchmark", *SERIES]
    for (_, *key), rows in current.groupby(by, observed=True, sort=False):
        yield (str(key[0]), str(key[1]), str(key[2])), rows


def _series(
    number: int,
    key: Key,
    rows: pd.DataFrame,
    params: dict[str, Any],
    *,
    names: Names,
    places: dict[str, int],
) -> ChartSeries:
    last = rows.iloc[-1]
    table = zip(
        rows["commit"].astype(str),
        *(_numbers(rows[name]) for name in ("value", "ci_low", "ci_high")),
        strict=True,
    )
    points = sorted(ChartPoint(places[commit], *values) for commit, *values in table)
    return ChartSeries(
        number=number,
        key=key,
        page=names.of(str(last["benchmark"])),
        suite=str(last["suite"]),
        metric=str(last["metric"]),
        unit=str(last["unit"]),
        direction=str(last["direction"]),
        kind=str(last["kind"]),
        noise_floor=float(last["noise_floor"]),
        least_change=float(last["least_change"]),
        params={name: str(value) for name, value in params.items()},
        points=points,
    )


def _numbers(column: "pd.Series[Any]") -> list[Reading]:
    """NaN is None; what is infinite stays, since an interval without end is not none."""
    return [None if np.isnan(value) else float(value) for value in np.asarray(column, float)]

"""The lines of `harness.tracking.history`'s figures as series for the detector."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from harness.tracking.detect.series import PointColumns, Series
from harness.tracking.frames import SERIES

_POINT = ("commit", "value", "ci_low", "ci_high", "samples")
_DEFINED = ["metric", "unit", "direction", "kind", "noise_floor", "least_change"]
_NEEDED = [*SERIES, *_POINT, "date", "measured", *_DEFINED]


def series_of(figures: pd.DataFrame) -> dict[tuple[str, str, str], Series]:
    """By (machine, environment, series); the last is the `Series`' name, too.

    Current figures alone, ordered by the commits' dates and then by when they were measured. The
    newest point's definition judges. A commit that was measured again stands once for each time.
    """
    # Less the parameters: each series would be cut out of hundreds of columns.
    current = figures.loc[figures["is_current"], _NEEDED]
    current = current.sort_values(["date", "measured"], kind="stable")
    columns = {name: current[name].to_numpy() for name in _POINT[1:]}
    commits = _Commits(current["commit"])
    groups = current.groupby(SERIES, observed=True, sort=False)
    of = groups.ngroup().to_numpy()
    if not len(current):
        return {}
    places = np.split(np.argsort(of, kind="stable"), np.flatnonzero(np.diff(np.sort(of))) + 1)
    newest = current.iloc[[each[-1] for each in places]].to_dict("records")
    return {
        (str(last["machine"]), str(last["environment"]), str(last["series"])): _series(
            last, columns, commits, each
        )
        for last, each in zip(newest, places, strict=True)
    }


def commits_in_order(figures: pd.DataFrame) -> list[str]:
    """Those of current figures, the oldest first."""
    current = figures.loc[figures["is_current"], ["date", "measured", "commit"]]
    current = current.sort_values(["date", "measured"], kind="stable")
    return [str(commit) for commit in current["commit"].drop_duplicates()]


class _Commits:
    """Commits of rows; series that were measured at the same ones share them."""

    def __init__(self, column: "pd.Series[Any]") -> None:
        of = column.astype("category").cat
        self.codes, self.names = of.codes.to_numpy(), list(map(str, of.categories))
        self.known: dict[bytes, Sequence[str]] = {}

    def of(self, rows: NDArray[np.int64]) -> Sequence[str]:
        codes = self.codes[rows]
        key = codes.tobytes()
        if key not in self.known:
            self.known[key] = [self.names[code] for code in codes]
        return self.known[key]


def _series(
    last: Mapping[Hashable, Any],
    columns: Mapping[str, NDArray[Any]],
    commits: _Commits,
    rows: NDArray[np.int64],
) -> Series:
    value, low, high, samples = (columns[name][rows] for name in _POINT[1:])
    kept = [each if isinstance(each, list) else () for each in samples]
    points = PointColumns(commits.of(rows), value, low, high, kept, np.ones(len(rows)))
    return Series(
        points,
        name=str(last["series"]),
        metric=str(last["metric"]),
        direction=last["direction"],
        kind=last["kind"],
        noise_floor=float(last["noise_floor"]),
        least_change=float(last["least_change"]),
        unit=str(last["unit"]),
    )

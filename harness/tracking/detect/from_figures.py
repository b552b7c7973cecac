"""The lines of `harness.tracking.history`'s figures as series for the detector."""

from typing import Any

import pandas as pd

from harness.tracking.detect.series import Point, Series
from harness.tracking.frames import SERIES

_NEEDED = [
    *SERIES,
    "commit",
    "date",
    "measured",
    "value",
    "ci_low",
    "ci_high",
    "samples",
    "metric",
    "direction",
    "kind",
    "noise_floor",
    "least_change",
]


def series_of(figures: pd.DataFrame) -> dict[tuple[str, str, str], Series]:
    """By (machine, environment, series); the last is the `Series`' name, too.

    Current figures alone, ordered by the commits' dates and then by when they were measured. The
    newest point's definition judges. A commit that was measured again stands once for each time.
    """
    # Less the parameters: each series would be cut out of hundreds of columns.
    current = figures.loc[figures["is_current"], _NEEDED]
    current = current.sort_values(["date", "measured"], kind="stable")
    return {
        (str(key[0]), str(key[1]), str(key[2])): _series(rows)
        for key, rows in current.groupby(SERIES, observed=True, sort=False)
    }


def _series(rows: pd.DataFrame) -> Series:
    last: Any = rows.iloc[-1]
    return Series(
        tuple(_point(row) for row in rows.itertuples()),
        name=str(last["series"]),
        metric=str(last["metric"]),
        direction=last["direction"],
        kind=last["kind"],
        noise_floor=float(last["noise_floor"]),
        least_change=float(last["least_change"]),
    )


def _point(row: Any) -> Point:
    interval = (float(row.ci_low), float(row.ci_high))
    known = interval[0] == interval[0] and interval[1] == interval[1]  # NaN: asv kept none
    samples = row.samples if isinstance(row.samples, list) else ()
    return Point(str(row.commit), float(row.value), interval if known else None, samples)

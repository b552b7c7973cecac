"""The stored values of one benchmark at one commit and all that is known of them, by column."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.statistics.mixture import FloatArray

BenchmarkOutcome = Literal["measured", "failed", "none"]
"""failed: asv has null for it. none: the benchmark was left out (NaN), or gave no number."""


class Points(NamedTuple):
    """A series and its parameters by name for each of a benchmark's points; files share them."""

    series: Sequence[str]
    parameters: Sequence[Mapping[str, str]]


class BenchmarkFigures(NamedTuple):
    """One benchmark at one commit, in one environment of one machine; a value for each point.

    ``date`` is the commit's, ``measured`` when the benchmark began, both in ms since 1970, UTC.
    ``version`` is the benchmark's now, ``result_version`` the one that was measured. The fields
    after ``points`` are as long as these.
    """

    commit: str
    date: int
    machine: str
    environment: str
    suite: str
    benchmark: str
    metric: str
    unit: str
    direction: str
    kind: str
    noise_floor: float
    least_change: float
    duration: float
    measured: int | None
    version: str | None
    result_version: str | None
    points: Points
    value: FloatArray
    outcome: Sequence[BenchmarkOutcome]
    ci_low: FloatArray
    ci_high: FloatArray
    samples: Sequence[list[float | None] | None]
    is_current: NDArray[np.bool_]

"""One stored value and all that is known of it: what asv's files are read into."""

from typing import Literal, NamedTuple

BenchmarkOutcome = Literal["measured", "failed", "none"]
"""failed: asv has null for it. none: the benchmark was left out (NaN), or gave no number."""


class Figure(NamedTuple):
    """One value: of one benchmark at one point, at one commit, in one environment of one machine.

    ``date`` is the commit's, ``measured`` when its benchmark began, both in ms since 1970, UTC.
    ``version`` is the benchmark's now, ``result_version`` the one that was measured.
    """

    commit: str
    date: int
    machine: str
    environment: str
    suite: str
    benchmark: str
    metric: str
    series: str
    value: float
    outcome: BenchmarkOutcome
    unit: str
    direction: str
    kind: str
    noise_floor: float
    least_change: float
    ci_low: float
    ci_high: float
    samples: list[float | None] | None
    duration: float
    measured: int | None
    version: str | None
    result_version: str | None
    is_current: bool
    params: dict[str, str]

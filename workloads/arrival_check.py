"""Whether arrivals are spread as they were asked for: gaps' CV, lag-1 correlation, dispersion."""

import math

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

MIN_GAPS, MIN_WINDOWS = 100, 20
"""With fewer, standard errors that hold for many say nothing, and nothing is judged."""

_WINDOW_GAPS = 10
_STANDARD_ERRORS = 6
"""A schedule that is as it was asked for is called otherwise about once in a million."""


class ArrivalCheck(msgspec.Struct, frozen=True):
    """How arrivals are spread; None where they cannot say.

    ``gap_cv``: standard deviation of the gaps over their mean. ``lag1_correlation``: of each gap
    and the next, by rank, since two long gaps would decide one by size; None where the gaps are
    equal to the nanosecond. ``dispersion``: variance over mean of the arrivals in ``num_windows``
    windows of ``window_gaps`` mean gaps each (ten, more where the gaps' CV is above 1).
    """

    num_gaps: int
    mean_gap_seconds: float
    gap_cv: float | None
    lag1_correlation: float | None
    dispersion: float | None
    num_windows: int
    window_gaps: float


def check_arrivals(arrival_seconds: ArrayLike) -> ArrivalCheck:
    """Look at arrivals, float64 ``[N]`` seconds in any order: scheduled or delivered ones."""
    seconds = np.sort(np.asarray(arrival_seconds, np.float64))
    gaps = np.diff(seconds)
    mean = float(gaps.mean()) if len(gaps) else 0.0
    if mean == 0:
        return ArrivalCheck(len(gaps), mean, None, None, None, 0, 0.0)
    cv = float(gaps.std()) / mean
    window_gaps = _WINDOW_GAPS * max(1.0, cv**2)
    # Half a gap early: else each arrival of a constant rate would lie on a window's border.
    places = (seconds - seconds[0]) / mean + 0.5
    num_windows = int(len(seconds) / window_gaps)
    counts = np.bincount((places / window_gaps).astype(np.int64))[:num_windows]
    return ArrivalCheck(
        num_gaps=len(gaps),
        mean_gap_seconds=mean,
        gap_cv=cv if len(gaps) > 1 else None,
        lag1_correlation=_lag1_correlation(gaps),
        dispersion=float(counts.var() / counts.mean()) if num_windows > 1 else None,
        num_windows=num_windows,
        window_gaps=window_gaps,
    )


def expected_dispersion(gap_cv: float, window_gaps: float) -> float:
    """Dispersion over windows of independent gamma gaps with this CV: for Poisson's 1 it is 1.

    Var N(t) of a renewal process in equilibrium, Cox, Renewal Theory (1962), section 4.5.
    """
    return 0.0 if gap_cv == 0 else gap_cv**2 + (1 - gap_cv**4) / (6 * window_gaps)


def gap_cv_tolerance(gap_cv: float, check: ArrivalCheck) -> float:
    """How far the gaps' CV may lie from ``gap_cv``, that of independent gamma gaps.

    Six standard errors, CV·√((1 + CV²) / 2n) by the delta method, and never below 0.02 or the
    nanosecond to which times are rounded.
    """
    error = gap_cv * math.sqrt((1 + gap_cv**2) / 2 / check.num_gaps)
    return max(_STANDARD_ERRORS * error, 0.02) + 1e-9 / check.mean_gap_seconds


def deviations(check: ArrivalCheck, gap_cv: float) -> list[str]:
    """What is not as in independent gamma gaps of this CV, in words; empty: all is as asked for.

    0 is a constant rate, of which the gaps' order and the counts follow, 1 a Poisson process.
    Fewer gaps than `MIN_GAPS` are not judged.
    """
    found: list[str] = []
    if check.gap_cv is None or check.num_gaps < MIN_GAPS:
        return found
    if abs(check.gap_cv - gap_cv) > gap_cv_tolerance(gap_cv, check):
        found.append(f"gaps' CV {check.gap_cv:.3g} where {gap_cv:.3g} was asked for")
    if gap_cv == 0:
        return found
    lag1 = check.lag1_correlation
    if lag1 is not None and abs(lag1) > _STANDARD_ERRORS / math.sqrt(check.num_gaps - 1):
        found.append(f"lag-1 correlation {lag1:.3g} where 0 was asked for")
    expected = expected_dispersion(gap_cv, check.window_gaps)
    # Counts have heavier tails than the normal's √(2/m); half a count either way is no news.
    allowed = _STANDARD_ERRORS * expected * math.sqrt(4 / max(check.num_windows, 1)) + 0.05
    if (
        check.dispersion is not None
        and check.num_windows >= MIN_WINDOWS
        and abs(check.dispersion - expected) > allowed
    ):
        found.append(f"dispersion {check.dispersion:.3g} where {expected:.3g} was asked for")
    return found


def _lag1_correlation(gaps: NDArray[np.float64]) -> float | None:
    if len(gaps) < 3 or gaps.std() <= 1e-9:
        return None
    _, place, counts = np.unique(gaps, return_inverse=True, return_counts=True)
    # Equal gaps share a rank: ranked by place they would seem to grow.
    ranks = (np.cumsum(counts) - counts / 2)[place]
    before, after = ranks[:-1], ranks[1:]
    if before.std() == 0 or after.std() == 0:
        return None
    return float(np.corrcoef(before, after)[0, 1])

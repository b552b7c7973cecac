"""When requests arrive: seconds from the start of the run."""

import math

import msgspec
import numpy as np
from numpy.typing import NDArray

from workloads.spec import parse_spec

ARRIVAL_FORMS = "at_once, poisson:REQUESTS_PER_SECOND or closed_loop:CONCURRENCY"


class AllAtOnce(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="at_once"
):
    """Every request is there from the start."""

    @property
    def max_concurrency(self) -> int:
        """No cap."""
        return 0

    def sample(self, rng: np.random.Generator, n: int) -> NDArray[np.float64]:
        """Zeros, float64 ``[n]``; takes nothing from ``rng``."""
        return np.zeros(n)


class Poisson(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="poisson"
):
    """Exponential gaps, ``rate`` requests a second on average; the first request comes at 0."""

    rate: float

    def __post_init__(self) -> None:
        if not 0 < self.rate < math.inf:
            raise ValueError(f"rate {self.rate:g} must be a number of requests a second above 0")

    @property
    def max_concurrency(self) -> int:
        """No cap."""
        return 0

    def sample(self, rng: np.random.Generator, n: int) -> NDArray[np.float64]:
        """Seconds, non-decreasing, float64 ``[n]``, in whole nanoseconds.

        Whole nanoseconds keep a schedule's hash free of the last bit of ``log1p``, which differs
        between mathematics libraries.
        """
        gaps = rng.exponential(1 / self.rate, max(n - 1, 0))
        seconds = np.concatenate([np.zeros(min(n, 1)), np.cumsum(gaps)])
        return np.rint(seconds * 1e9) / 1e9


class ClosedLoop(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="closed_loop"
):
    """``concurrency`` requests in flight: a next one is sent when one has finished."""

    concurrency: int

    def __post_init__(self) -> None:
        if not 1 <= self.concurrency < 2**31:
            raise ValueError(f"concurrency {self.concurrency:,} must be 1 or more")

    @property
    def max_concurrency(self) -> int:
        """The cap."""
        return self.concurrency

    def sample(self, rng: np.random.Generator, n: int) -> NDArray[np.float64]:
        """Zeros, float64 ``[n]``: the cap alone holds requests back; takes nothing from ``rng``."""
        return np.zeros(n)


Arrivals = AllAtOnce | Poisson | ClosedLoop


def parse_arrivals(text: str) -> Arrivals:
    """Read arrivals as a flag gives them. Raises ValueError."""
    arrivals: Arrivals = parse_spec(
        text, (AllAtOnce, Poisson, ClosedLoop), "arrivals", ARRIVAL_FORMS
    )
    return arrivals

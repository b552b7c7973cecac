"""When requests arrive: seconds from the start of the run."""

import math

import msgspec
import numpy as np
from numpy.typing import NDArray

from workloads.recipe.spec import parse_spec

ARRIVAL_FORMS = (
    "at_once, constant:REQUESTS_PER_SECOND, poisson:REQUESTS_PER_SECOND, "
    "gamma:REQUESTS_PER_SECOND:BURSTINESS, ramp:FROM:TO:SECONDS or closed_loop:CONCURRENCY"
)

Seconds = NDArray[np.float64]


class _Process(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind"):
    """What arrivals are unless they say otherwise: without a cap, and nothing is expected."""

    @property
    def max_concurrency(self) -> int:
        """Requests in flight at most, 0 for no cap."""
        return 0

    @property
    def gap_cv(self) -> float | None:
        """Standard deviation of the gaps over their mean; None where there are no gaps to ask."""
        return None

    def stationary(self, seconds: Seconds) -> Seconds:
        """The same arrivals by a clock on which their rate is constant, in any unit."""
        return seconds


class AllAtOnce(_Process, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="at_once"):
    """Every request is there from the start."""

    def sample(self, rng: np.random.Generator, n: int) -> Seconds:
        """Zeros, float64 ``[n]``; takes nothing from ``rng``."""
        return np.zeros(n)


class Constant(_Process, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="constant"):
    """``rate`` requests a second, one like the other; the first request comes at 0."""

    rate: float

    def __post_init__(self) -> None:
        _check_rate("rate", self.rate)

    @property
    def gap_cv(self) -> float:
        """All gaps are equal."""
        return 0.0

    def sample(self, rng: np.random.Generator, n: int) -> Seconds:
        """Seconds, float64 ``[n]``, to the nearest nanosecond; takes nothing from ``rng``."""
        return _whole_nanoseconds(np.arange(n) / self.rate)


class Poisson(_Process, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="poisson"):
    """Exponential gaps, ``rate`` requests a second on average; the first request comes at 0."""

    rate: float

    def __post_init__(self) -> None:
        _check_rate("rate", self.rate)

    @property
    def gap_cv(self) -> float:
        """An exponential's."""
        return 1.0

    def sample(self, rng: np.random.Generator, n: int) -> Seconds:
        """Seconds, non-decreasing, float64 ``[n]``, in whole nanoseconds."""
        return _whole_nanoseconds(_from_zero(rng.exponential(1 / self.rate, max(n - 1, 0)), n))


class Gamma(_Process, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="gamma"):
    """Gamma gaps of mean 1 / ``rate``, whose shape is ``burstiness``, as in vLLM's bench serve.

    1 is a Poisson process, less is burstier: the gaps' CV is 1 / √burstiness. The first request
    comes at 0.
    """

    rate: float
    burstiness: float

    def __post_init__(self) -> None:
        _check_rate("rate", self.rate)
        if not 0 < self.burstiness < math.inf:
            raise ValueError(f"burstiness {self.burstiness:g} must be a number above 0")

    @property
    def gap_cv(self) -> float:
        """That of a gamma distribution of this shape."""
        return 1 / math.sqrt(self.burstiness)

    def sample(self, rng: np.random.Generator, n: int) -> Seconds:
        """Seconds, non-decreasing, float64 ``[n]``, in whole nanoseconds."""
        scale = 1 / (self.rate * self.burstiness)
        return _whole_nanoseconds(_from_zero(rng.gamma(self.burstiness, scale, max(n - 1, 0)), n))


class Ramp(_Process, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="ramp"):
    """A Poisson process whose rate goes straight from one to the other, and then stays.

    ``from_rate`` and ``to_rate`` in requests a second, ``seconds`` from one to the other. The
    first request comes at 0.
    """

    from_rate: float
    to_rate: float
    seconds: float

    def __post_init__(self) -> None:
        if self.from_rate != 0:
            _check_rate("from_rate", self.from_rate)
        _check_rate("to_rate", self.to_rate)
        if not 0 < self.seconds < math.inf:
            raise ValueError(f"seconds {self.seconds:g} must be a number above 0")

    @property
    def gap_cv(self) -> float:
        """An exponential's, by the stationary clock."""
        return 1.0

    def stationary(self, seconds: Seconds) -> Seconds:
        """The requests expected until then: of these a Poisson process has one per unit."""
        on_ramp = np.minimum(seconds, self.seconds)
        slope = (self.to_rate - self.from_rate) / self.seconds
        climbed = (self.from_rate + slope * on_ramp / 2) * on_ramp
        return climbed + self.to_rate * (seconds - on_ramp)

    def sample(self, rng: np.random.Generator, n: int) -> Seconds:
        """Seconds, non-decreasing, float64 ``[n]``, in whole nanoseconds.

        By inversion: the moments at which the expected number of requests (the integral of the
        rate) reaches those of a Poisson process of rate 1. Çınlar, Introduction to Stochastic
        Processes (1975), chapter 4.
        """
        expected = _from_zero(rng.exponential(1, max(n - 1, 0)), n)
        top = (self.from_rate + self.to_rate) / 2 * self.seconds
        on_ramp = np.minimum(expected, top)
        slope = (self.to_rate - self.from_rate) / self.seconds
        # The quadratic's root in the form that neither cancels nor divides by a slope of 0.
        rate_then = np.sqrt(np.maximum(self.from_rate**2 + 2 * slope * on_ramp, 0))
        divisor = self.from_rate + rate_then
        climbed = np.divide(2 * on_ramp, divisor, out=np.zeros(n), where=divisor > 0)
        seconds = _whole_nanoseconds(climbed + (expected - on_ramp) / self.to_rate)
        # Two arrivals within the root's rounding may have changed places.
        return np.maximum.accumulate(seconds)


class ClosedLoop(
    _Process, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="closed_loop"
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

    def sample(self, rng: np.random.Generator, n: int) -> Seconds:
        """Zeros, float64 ``[n]``: the cap alone holds requests back; takes nothing from ``rng``."""
        return np.zeros(n)


Arrivals = AllAtOnce | Constant | Poisson | Gamma | Ramp | ClosedLoop


def parse_arrivals(text: str) -> Arrivals:
    """Read arrivals as a flag gives them. Raises ValueError."""
    arrivals: Arrivals = parse_spec(
        text, (AllAtOnce, Constant, Poisson, Gamma, Ramp, ClosedLoop), "arrivals", ARRIVAL_FORMS
    )
    return arrivals


def _check_rate(name: str, rate: float) -> None:
    if not 0 < rate < math.inf:
        raise ValueError(f"{name} {rate:g} must be a number of requests a second above 0")


def _from_zero(gaps: Seconds, n: int) -> Seconds:
    """Times of ``n`` arrivals, the first at 0."""
    return np.concatenate([np.zeros(min(n, 1)), np.cumsum(gaps)])


def _whole_nanoseconds(seconds: Seconds) -> Seconds:
    """Keeps a schedule's hash free of the last bits of ``log1p`` and ``pow``.

    These differ between mathematics libraries.
    """
    rounded: Seconds = np.rint(seconds * 1e9) / 1e9
    return rounded

"""What a server gave while requests were being sent, its first quarter of that time left out."""

from math import sqrt

import msgspec
import numpy as np

from harness.load.observed import Observed
from harness.trial.recorder import RequestStamps

_WARM_SHARE = 0.25
_PARTS = 10
_LEAST_SECONDS = 0.5


class SteadyRate(msgspec.Struct, frozen=True, kw_only=True):
    """Requests per second that a server gave in ``seconds``, by the tokens that came: each is a
    share of its request. ``ci95``: of means of parts of that time, by Student's t.
    ``sent``: requests per second that it was asked.
    """

    seconds: float
    sent: float
    served: float
    ci95: tuple[float, float]

    @property
    def error(self) -> float:
        """Half the interval, as a share of ``served``."""
        low, high = self.ci95
        return (high - low) / 2 / self.served if self.served else 1.0


def steady_rate(observed: Observed, requests: RequestStamps) -> SteadyRate | None:
    """It, None where that time is too short to say anything. Imports SciPy when called."""
    sent = np.sort(requests.sent_ns[requests.sent_ns > 0])
    if len(sent) < 2:
        return None
    end = int(sent[-1])
    begin = int(sent[0] + _WARM_SHARE * (end - sent[0]))
    seconds = (end - begin) / 1e9
    if seconds < _LEAST_SECONDS:
        return None
    responses = observed.responses
    done = responses.completed & (responses.num_deliveries > 0)
    whose = np.repeat(np.arange(len(done)), responses.num_deliveries)
    share = 1 / np.maximum(responses.num_deliveries, 1)
    counted = done[whose]
    at, weight = responses.delivered_ns[counted], share[whose[counted]]
    rates, _ = np.histogram(at, bins=_PARTS, range=(begin, end), weights=weight)
    rates = rates / (seconds / _PARTS)
    from scipy.special import stdtrit

    half = float(stdtrit(_PARTS - 1, 0.975)) * float(rates.std(ddof=1)) / sqrt(_PARTS)
    served = float(rates.mean())
    return SteadyRate(
        seconds=seconds,
        sent=float((sent >= begin).sum() - 1) / seconds,
        served=served,
        ci95=(served - half, served + half),
    )

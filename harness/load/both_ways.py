"""One schedule in process and over HTTP: what the API layer adds, per request and per token."""

from collections.abc import Mapping, Sequence
from math import sqrt

import msgspec
import numpy as np

from harness.load.result import LoadResult
from harness.result.result import Result
from harness.trial.spec import TrialResult

BOTH_WAYS_METRICS = ("ttft_mean", "tpot_mean", "output_throughput")
"""What is set side by side: per request, per token, and altogether."""


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """A metric both ways, a sample a round. ``difference``: over HTTP less in process, the mean;
    ``ci95``: its interval by Student's t, None for fewer than three rounds.
    """

    in_process: list[float]
    over_http: list[float]
    difference: float
    ci95: tuple[float, float] | None


class CellBothWays(msgspec.Struct, frozen=True, kw_only=True):
    """One cell. ``cpu_per_token``: CPU seconds of each process of the server per output token, by
    role, a sample a round.
    """

    id: str
    axes: dict[str, str | int]
    metrics: dict[str, Pair]
    cpu_per_token: dict[str, list[float]]


class HttpResult(Result, frozen=True, kw_only=True, tag="http"):
    """Everything `load --http-cost` knows at its end; ``missing``: cells with no usable round.

    ``notes`` name the rounds left out.
    """

    rounds: int
    cells: list[CellBothWays]
    missing: list[str] = []


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """A cell measured both ways once; ``cpu_seconds`` of the server's processes while it gave
    ``num_tokens``.
    """

    in_process: TrialResult
    over_http: LoadResult
    cpu_seconds: dict[str, float]
    num_tokens: int

    @property
    def refusal(self) -> str:
        """Why it must not be used, in one sentence, or ""."""
        trial = self.over_http.trial
        if self.in_process.invalid:
            return f"in process: {self.in_process.invalid}"
        if trial.invalid:
            return f"over HTTP: {trial.invalid}"
        if trial.lengths_sha256 != self.in_process.lengths_sha256:
            return "the two ways gave outputs of different lengths, which is different work"
        return ""


def both_ways(id_: str, axes: Mapping[str, str | int], rounds: Sequence[Round]) -> CellBothWays:
    """What a cell's usable rounds say. Raises ValueError for none."""
    if not rounds:
        raise ValueError(f"{id_}: no round can be used")
    pairs = {name: _pair(name, rounds) for name in BOTH_WAYS_METRICS}
    return CellBothWays(
        id=id_,
        axes=dict(axes),
        metrics={name: pair for name, pair in pairs.items() if pair is not None},
        cpu_per_token={
            role: [each.cpu_seconds[role] / each.num_tokens for each in rounds]
            for role in rounds[0].cpu_seconds
        },
    )


def _pair(name: str, rounds: Sequence[Round]) -> Pair | None:
    both = [
        (each.in_process.metrics.get(name), each.over_http.trial.metrics.get(name))
        for each in rounds
    ]
    known = [(a, b) for a, b in both if a is not None and b is not None]
    if not known:
        return None
    here, there = (np.array(side, float) for side in zip(*known, strict=True))
    differences = there - here
    mean = float(differences.mean())
    width = None
    if len(differences) > 2:
        from scipy.special import stdtrit

        error = float(differences.std(ddof=1)) / sqrt(len(differences))
        width = float(stdtrit(len(differences) - 1, 0.975)) * error
    return Pair(
        in_process=here.tolist(),
        over_http=there.tolist(),
        difference=mean,
        ci95=None if width is None else (mean - width, mean + width),
    )

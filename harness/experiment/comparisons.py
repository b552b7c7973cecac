"""Ratios of one family with their verdicts, as a result has them."""

from collections.abc import Sequence
from typing import Literal

from harness.experiment.result import Comparison
from harness.statistics.paired_ratio import Ratio, holm
from harness.statistics.verdict import decide


def comparisons(
    metric: str,
    names: Sequence[tuple[str, str]],
    ratios: Sequence[Ratio],
    direction: Literal["higher", "lower"],
    tolerance: float,
    also: Sequence[float] = (),
) -> list[Comparison]:
    """The ratios of one family with their verdicts; ``names``: each one's baseline and candidate.

    ``also``: p-values of the same family that are judged elsewhere.
    Raises ValueError as `decide`.
    """
    verdicts = decide(ratios, direction, tolerance, also)
    adjusted = holm([*(ratio.p for ratio in ratios), *also])[: len(ratios)]
    return [
        Comparison(
            metric=metric,
            baseline=baseline,
            candidate=candidate,
            ratio=ratio.ratio,
            ci95=ratio.ci95,
            verdict=verdict,
            p_adjusted=p,
            mde=ratio.mde,
            rounds=ratio.rounds,
        )
        for (baseline, candidate), ratio, verdict, p in zip(
            names, ratios, verdicts, adjusted, strict=True
        )
    ]

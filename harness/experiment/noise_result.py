"""What ``gcbench doctor --noise`` answers, for programs."""

from typing import Any

import msgspec
import numpy as np

from harness.experiment.node_noise import NodeNoise, node_noise
from harness.experiment.outcomes import Trials
from harness.experiment.result import ExperimentResult
from harness.experiment.run import PlanRun
from harness.result.result import Result
from harness.statistics.noise_floor import noise_floor
from harness.statistics.paired_ratio import FEWEST_PAIRS


class NoiseResult(Result, frozen=True, kw_only=True, tag="noise"):
    """The noise floor of equal cells (`NoiseFloor`); where not ``is_complete`` there is none yet.

    ``rounds`` are those that were measured, ``metric`` is what was looked at.
    ``seconds_per_round``: how long one took, 0 where that is not known. ``nodes``: those of a
    cluster, each by itself. ``experiment``: of the equal cells.
    """

    metric: str
    cells: int
    rounds: int
    trial_cv: float | None = None
    sd_log_ratio: float | None = None
    mde: dict[int, float] = {}
    seconds_per_round: float = 0.0
    nodes: list[NodeNoise] = []
    experiment: ExperimentResult | None = None


def noise_result(ran: PlanRun, result: ExperimentResult, *, is_resumed: bool) -> NoiseResult:
    """What a plan of two equal cells found; no floor where it was interrupted or too few rounds
    have a sample of both.

    ``is_resumed``: some of its rounds took their time in an earlier run.
    """
    plan, metric = ran.plan, ran.plan.decide[0]
    about: dict[str, Any] = {
        field: getattr(result, field)
        for field in ("command", "machine", "workloads", "surroundings", "notes")
    }
    about["experiment"] = result
    samples = np.array(
        [cell.metrics[metric].samples for cell in result.cells if metric in cell.metrics],
        dtype=np.float64,
    ).T
    has_both = samples.ndim == 2 and samples.shape[1] == len(plan.cells)
    whole_rounds = int(np.isfinite(samples).all(axis=1).sum()) if has_both else 0
    if ran.is_interrupted or whole_rounds < FEWEST_PAIRS:
        return NoiseResult(
            name=plan.name,
            metric=metric,
            cells=len(plan.cells),
            rounds=min((cell.samples for cell in result.cells), default=0),
            is_complete=False,
            **about,
        )
    first, second = plan.cells
    pairs = Trials(plan, ran.outcomes).pairs(first, second, metric) if result.nodes else []
    is_timed = not is_resumed and not result.nodes  # nodes measure side by side
    return NoiseResult(
        name=plan.name,
        metric=metric,
        seconds_per_round=ran.seconds / plan.rounds if is_timed else 0.0,
        nodes=node_noise(metric, pairs),
        **msgspec.structs.asdict(noise_floor(samples)),
        **about,
    )

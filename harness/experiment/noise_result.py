"""What ``gcbench noise`` answers, for programs."""

import msgspec

from harness.experiment.node_noise import NodeNoise
from harness.machine.other_work import Surroundings
from harness.statistics.noise_floor import NoiseFloor

NOISE_SCHEMA = "gcbench.noise/1"


class NoiseResult(msgspec.Struct, frozen=True, kw_only=True):
    """The noise floor of equal cells (`NoiseFloor`); where not ``is_complete`` there is none yet.

    ``rounds`` are those that were measured, ``metric`` is what was looked at. ``nodes``: those of a
    cluster, each by itself.
    """

    name: str
    metric: str
    cells: int
    rounds: int
    trial_cv: float | None = None
    sd_log_ratio: float | None = None
    mde: dict[int, float] = {}
    is_complete: bool = True
    surroundings: Surroundings | None = None
    nodes: list[NodeNoise] = []
    schema: str = NOISE_SCHEMA


def noise_result(
    name: str,
    metric: str,
    floor: NoiseFloor,
    surroundings: Surroundings | None,
    nodes: list[NodeNoise],
) -> NoiseResult:
    """A floor with what it is of."""
    of = msgspec.structs.asdict(floor)
    return NoiseResult(name=name, metric=metric, surroundings=surroundings, nodes=nodes, **of)

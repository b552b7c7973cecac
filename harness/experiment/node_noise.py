"""The noise floor of each node of a cluster, and which nodes are too noisy to measure on."""

from collections.abc import Sequence

import msgspec
import numpy as np

from harness.statistics.noise_floor import noise_floor
from harness.statistics.paired_ratio import FEWEST_PAIRS
from harness.trial.spec import TrialResult

ROUNDS = 14
MOST_DETECTABLE = 0.03
"""A node is to find a change of 3 % in 14 rounds."""


class NodeNoise(msgspec.Struct, frozen=True, kw_only=True):
    """What equal cells differ by on one node, as `NoiseFloor` has it; ``mde`` in 14 rounds.

    None where its blocks were fewer than 3. ``is_fit``: it finds a change of 3 % in 14 rounds.
    """

    node: str
    rounds: int
    trial_cv: float | None = None
    sd_log_ratio: float | None = None
    mde: float | None = None

    @property
    def is_fit(self) -> bool:
        """Whether to measure on it."""
        return self.mde is not None and self.mde <= MOST_DETECTABLE


def node_noise(metric: str, pairs: Sequence[tuple[TrialResult, TrialResult]]) -> list[NodeNoise]:
    """Of pairs of equal cells' results, each of one block."""
    by_node: dict[str, list[list[float | None]]] = {}
    for both in pairs:
        by_node.setdefault(both[0].node, []).append([each.metrics[metric] for each in both])
    return [_of(node, samples) for node, samples in sorted(by_node.items())]


def _of(node: str, samples: list[list[float | None]]) -> NodeNoise:
    if len(samples) < FEWEST_PAIRS:
        return NodeNoise(node=node, rounds=len(samples))
    floor = noise_floor(np.array(samples, np.float64))
    return NodeNoise(
        node=node,
        rounds=floor.rounds,
        trial_cv=floor.trial_cv,
        sd_log_ratio=floor.sd_log_ratio,
        mde=floor.mde[ROUNDS],
    )

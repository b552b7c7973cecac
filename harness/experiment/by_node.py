"""What each node says of a change, and what becomes of a verdict on which nodes disagree."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from harness.experiment.result import Comparison, NodeRatio
from harness.statistics.agreement import disagreement
from harness.statistics.paired_ratio import ALPHA, FEWEST_PAIRS, holm, paired_ratio
from harness.trial.spec import TrialResult


class ByNode(NamedTuple):
    """The ratio of each node, none where there is one node; ``p`` as `disagreement`."""

    ratios: list[NodeRatio]
    p: float | None


def node_ratios(metric: str, pairs: Sequence[tuple[TrialResult, TrialResult]]) -> ByNode:
    """Of results paired within blocks, baseline first; all have the metric and it is above 0."""
    by_node: dict[str, list[tuple[float, float]]] = {}
    for before, after in pairs:
        both = before.metrics[metric] or 0.0, after.metrics[metric] or 0.0
        by_node.setdefault(before.node, []).append(both)
    if len(by_node) < 2:
        return ByNode([], None)
    logs = {node: [float(np.log(b / a)) for a, b in found] for node, found in by_node.items()}
    ratios = [_ratio(node, by_node[node]) for node in sorted(by_node)]
    return ByNode(ratios, disagreement(list(logs.values())))


def with_nodes(compared: Sequence[Comparison], nodes: Sequence[ByNode]) -> list[Comparison]:
    """One family with what each node says; where nodes disagree, a verdict holds if it is all's."""
    tested = [each.p for each in nodes if each.p is not None]
    adjusted = iter(holm(tested))
    found = []
    for comparison, (ratios, p) in zip(compared, nodes, strict=True):
        nodes_p = None if p is None else next(adjusted)
        verdict = comparison.verdict
        if nodes_p is not None and nodes_p < ALPHA and not _is_of_all(comparison, ratios):
            verdict = "inconclusive"
        found.append(
            msgspec.structs.replace(comparison, verdict=verdict, by_node=ratios, nodes_p=nodes_p)
        )
    return found


def _is_of_all(comparison: Comparison, ratios: Sequence[NodeRatio]) -> bool:
    """Whether it is a change for better or worse on each node."""
    is_up = comparison.ratio > 1
    is_change = comparison.verdict in ("better", "worse")
    return is_change and all((each.ratio > 1) == is_up for each in ratios)


def _ratio(node: str, pairs: Sequence[tuple[float, float]]) -> NodeRatio:
    before, after = zip(*pairs, strict=True)
    if len(pairs) < FEWEST_PAIRS:
        middle = float(np.exp(np.mean(np.log(after) - np.log(before))))
        return NodeRatio(node, middle, len(pairs))
    found = paired_ratio(before, after)
    return NodeRatio(node, found.ratio, found.rounds, found.ci95)

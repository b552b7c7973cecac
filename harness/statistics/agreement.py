"""Whether several machines agree about a ratio: the interaction of node and cell."""

from collections.abc import Sequence

import numpy as np


def disagreement(log_ratios: Sequence[Sequence[float]]) -> float | None:
    """P-value of nodes that have one ratio, from the paired log ratios of each node's blocks.

    Kruskal and Wallis (1952), which an outlier does not sway; its chi-squared approximation is
    conservative for few blocks. None where fewer than 2 nodes have 2 blocks.
    """
    from scipy.stats import kruskal

    several = [each for each in log_ratios if len(each) > 1]
    if len(several) < 2:
        return None
    if np.ptp(np.concatenate(several)) == 0:
        return 1.0
    return float(kruskal(*several).pvalue)

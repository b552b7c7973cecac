"""How far the counts of sampled steps may be from those of all steps."""

from collections.abc import Sequence

import numpy as np


def relative_half_width(samples: Sequence[tuple[int, int]], every: int) -> float | None:
    """Half the 95 % interval of bytecodes per output, relative; None with fewer than two samples.

    ``samples``: outputs and bytecodes of each traced step, a random one of each ``every``. The
    variance is that of a ratio estimator (Cochran, Sampling Techniques, section 6.4), as if steps
    had been drawn from all of them alike, which makes it no smaller than it is.
    """
    rows, bytecodes = np.asarray(samples, float).reshape(-1, 2).T
    if len(rows) < 2 or not bytecodes.sum():
        return None
    from scipy.special import stdtrit

    ratio = bytecodes.sum() / rows.sum()
    spread = float(np.sqrt(((bytecodes - ratio * rows) ** 2).sum() / (len(rows) - 1)))
    error = spread * np.sqrt((1 - 1 / every) / len(rows)) / bytecodes.mean()
    return float(stdtrit(len(rows) - 1, 0.975) * error)

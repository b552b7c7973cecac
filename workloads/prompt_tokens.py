"""Prompt tokens without storing them: each is a hash of (seed, request, position)."""

import numpy as np
from numpy.typing import NDArray

_GOLDEN_GAMMA = np.uint64(0x9E3779B97F4A7C15)


def prompt_token_ids(
    token_seed: int, request: int, prompt_len: int, vocab_size: int
) -> NDArray[np.int32]:
    """Tokens 0 to ``vocab_size`` - 1 of one prompt, int32 ``[prompt_len]``.

    Each prompt is a SplitMix64 stream (Steele, Lea and Flood, OOPSLA 2014) whose upper 32 bits
    are scaled to the vocabulary, so a longer prompt begins as a shorter one does.
    """
    start = _mix(_mix(np.array([token_seed], np.uint64)) ^ np.uint64(request))
    positions = np.arange(1, prompt_len + 1, dtype=np.uint64)
    upper = _mix(start + positions * _GOLDEN_GAMMA) >> np.uint64(32)
    return ((upper * np.uint64(vocab_size)) >> np.uint64(32)).astype(np.int32)


def _mix(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64's finaliser: every bit of ``z`` changes about half of the result's."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))

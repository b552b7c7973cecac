"""Prompt tokens without storing them: each is a hash of (seed, stream, position)."""

import numpy as np
from numpy.typing import NDArray

_GOLDEN_GAMMA = np.uint64(0x9E3779B97F4A7C15)


def stream_token_ids(
    token_seed: int, stream: int, num_tokens: int, vocab_size: int
) -> NDArray[np.int32]:
    """The first tokens, 0 to ``vocab_size`` - 1, of a stream, int32 ``[num_tokens]``.

    Each is a SplitMix64 stream (Steele, Lea and Flood, OOPSLA 2014) whose upper 32 bits are
    scaled to the vocabulary, so more tokens of it begin as fewer do.
    """
    start = _mix(_mix(np.array([token_seed], np.uint64)) ^ np.uint64(stream))
    positions = np.arange(1, num_tokens + 1, dtype=np.uint64)
    upper = _mix(start + positions * _GOLDEN_GAMMA) >> np.uint64(32)
    return ((upper * np.uint64(vocab_size)) >> np.uint64(32)).astype(np.int32)


def _mix(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64's finaliser: every bit of ``z`` changes about half of the result's."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))

"""The swappable shapes in which a step's sampled tokens leave the runner; one shape a file."""

from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np

from engines.protocol import Int32Array

PLACEHOLDER_TOKEN_ID = -1
"""Fills a row of the device's tokens beyond the tokens that were sampled, as in vLLM."""


class Representation(Protocol):
    """A shape for sampled tokens: how it is made on the runner's side and read on the other.

    ``from_device`` gets the runner's host buffer, which the next step overwrites: whatever it
    returns must own its memory, unless ``owns_memory`` says that it is valid until then only.
    ``columnar`` says whether `columns` works; a list of Python objects has no columns.
    """

    columnar: bool
    owns_memory: bool

    def from_device(self, tokens: Int32Array, num_tokens: Int32Array | None) -> Any:
        """Shape the host buffer, int32 ``[num_reqs, max_tokens]``.

        ``num_tokens`` int32 ``[num_reqs]`` says how many each row holds (0 for a prompt that
        is not through yet); None says one each.
        """
        ...

    def per_request(self, sampled: Any) -> Iterable[int | list[int]]:
        """Each request's own tokens, in row order, as Python values: an int or a list."""
        ...

    def columns(self, sampled: Any) -> tuple[Int32Array, Int32Array]:
        """All tokens int32 ``[total]`` in row order and their counts int32 ``[num_reqs]``."""
        ...

    def nbytes(self, sampled: Any) -> int:
        """Memory of the hand-off in bytes, padding and Python objects included."""
        ...


def count_tokens(tokens: Int32Array) -> Int32Array | None:
    """Tokens in each row of the host buffer, or None where every row holds exactly one."""
    if tokens.shape[1] == 1 and tokens.min(initial=0) >= 0:
        return None
    return np.asarray((tokens != PLACEHOLDER_TOKEN_ID).sum(axis=1), dtype=np.int32)


def ragged_mask(num_tokens: Int32Array, width: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """bool ``[num_reqs, width]``: which places of a padded matrix hold a token."""
    return np.arange(width, dtype=np.int32) < num_tokens[:, None]

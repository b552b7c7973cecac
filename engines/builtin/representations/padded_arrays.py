"""A matrix and its counts: int32 ``[num_reqs, max_tokens]`` and ``[num_reqs]`` (on vLLM #26368)."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from engines.builtin.representations import ragged_mask
from engines.protocol import Int32Array


class PaddedTokens(NamedTuple):
    """``token_ids`` int32 ``[num_reqs, max_tokens]``; ``num_tokens`` int32 ``[num_reqs]``."""

    token_ids: Int32Array
    num_tokens: Int32Array


class PaddedArrays:
    """Two arrays a step, whatever the batch; ragged steps pay for their padding."""

    columnar = True
    owns_memory = True

    def from_device(self, tokens: Int32Array, num_tokens: Int32Array | None) -> PaddedTokens:
        """One copy of the buffer, padding included."""
        if num_tokens is None:
            num_tokens = np.ones(len(tokens), np.int32)
        return PaddedTokens(tokens.copy(), num_tokens)

    def per_request(self, sampled: PaddedTokens) -> Iterable[list[int]]:
        """A slice and a list for each request, made one by one."""
        for row, count in zip(sampled.token_ids, sampled.num_tokens.tolist(), strict=True):
            yield row[:count].tolist()

    def columns(self, sampled: PaddedTokens) -> tuple[Int32Array, Int32Array]:
        """The matrix without its padding, and the counts as they are."""
        width = sampled.token_ids.shape[1]
        if width == 1 and sampled.num_tokens.all():
            return sampled.token_ids[:, 0], sampled.num_tokens
        return sampled.token_ids[ragged_mask(sampled.num_tokens, width)], sampled.num_tokens

    def to_buffers(self, sampled: PaddedTokens) -> Sequence[Int32Array]:
        """The two, padding included."""
        return sampled

    def from_buffers(self, arrays: Sequence[Int32Array]) -> PaddedTokens:
        """The two again."""
        return PaddedTokens(*arrays)

    def nbytes(self, sampled: PaddedTokens) -> int:
        """Both arrays, padding included."""
        return sampled.token_ids.nbytes + sampled.num_tokens.nbytes

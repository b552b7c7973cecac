"""Nested lists from the runner, then a dictionary of objects a token: vLLM before #28245."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from engines.builtin.logprobs import DeviceLogprobs, Logprob, one_position, row_offsets
from engines.builtin.representations import ragged_mask
from engines.protocol import Int32Array


class LogprobsLists(NamedTuple):
    """A position a sampled token of the step: ids and values as lists, the sampled one's rank."""

    token_ids: list[list[int]]
    logprobs: list[list[float]]
    ranks: list[int]
    offsets: Int32Array | None


class Lists:
    """Two tracked lists a token from the runner, two objects and more a token kept."""

    needs_objects = True

    def from_device(self, drawn: DeviceLogprobs, num_tokens: Int32Array | None) -> LogprobsLists:
        """All rows at once by `tolist`."""
        places = _places(drawn, num_tokens)
        return LogprobsLists(
            drawn.token_ids[places].tolist(),
            drawn.logprobs[places].tolist(),
            drawn.ranks[places].tolist(),
            row_offsets(num_tokens),
        )

    def per_request(
        self, step: LogprobsLists, firsts: Sequence[int], counts: Sequence[int]
    ) -> Iterator[list[dict[int, Logprob]]]:
        """A list for each request, a dictionary in it for each token."""
        token_ids, logprobs, ranks, _ = step
        for first, count in zip(firsts, counts, strict=True):
            yield [
                one_position(token_ids[i], logprobs[i], ranks[i])
                for i in range(first, first + count)
            ]

    def empty(self) -> list[dict[int, Logprob]]:
        """A list."""
        return []


def _places(
    drawn: DeviceLogprobs, num_tokens: Int32Array | None
) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    shape = drawn.ranks.shape
    return np.ones(shape, np.bool_) if num_tokens is None else ragged_mask(num_tokens, shape[1])

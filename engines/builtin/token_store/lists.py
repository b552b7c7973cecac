"""A list a request and a loop over requests, as vLLM's scheduler keeps them."""

from itertools import compress
from typing import cast

import numpy as np

from engines.builtin.device.choice import eos_token_ids
from engines.builtin.registries import REPRESENTATIONS
from engines.builtin.representations import Representation
from engines.builtin.request_table import Request, RequestTable
from engines.builtin.token_store import Taken, stop_token_ids
from engines.protocol import BoolArray, EngineConfig, FinishReason, Int32Array


class _Running:
    """A running request as the scheduler's loop sees it."""

    __slots__ = ("max_tokens", "min_tokens", "output_token_ids", "stop_token_ids")

    def __init__(self, request: Request, eos_token_ids: tuple[int, ...]) -> None:
        params = request.params
        self.max_tokens = params.max_tokens
        self.min_tokens = params.min_tokens
        self.stop_token_ids = frozenset(stop_token_ids(params, eos_token_ids))
        self.output_token_ids: list[int] = request.output_token_ids.tolist()

    def take(self, tokens: list[int]) -> FinishReason | None:
        """Append a step's tokens up to the first stop; why the request ended, if it did."""
        output, stops, max_tokens = self.output_token_ids, self.stop_token_ids, self.max_tokens
        for token in tokens:
            output.append(token)
            if token in stops and len(output) > self.min_tokens:
                return FinishReason.STOP
            if len(output) >= max_tokens:
                return FinishReason.LENGTH
        return None


class TokenLists:
    """``Taken.tokens``: each row's own, an int or a list, ``list[int | list[int]]``."""

    def __init__(self, config: EngineConfig, table: RequestTable) -> None:
        self._representation: Representation = REPRESENTATIONS.load(config.representation)()
        self._requests: list[_Running | None] = [None] * config.max_num_seqs
        self._eos_token_ids = eos_token_ids(config)

    def admit(self, row: int, request: Request) -> None:
        """Make the request's object."""
        self._requests[row] = _Running(request, self._eos_token_ids)

    def append(self, rows: Int32Array, sampled: object, valid: BoolArray | None) -> Taken:
        """Go through the rows one by one."""
        taken = list(self._representation.per_request(sampled))
        num_dropped = 0
        if valid is not None:
            dropped = compress(taken, (~valid).tolist())
            num_dropped = sum(1 if isinstance(each, int) else len(each) for each in dropped)
            taken = list(compress(taken, valid.tolist()))
        ragged: list[int] = []
        num_sampled: list[int] = []
        num_taken: list[int] = []
        finished: list[int] = []
        reasons: list[FinishReason] = []
        requests = cast("list[_Running]", self._requests)  # a scheduled row has its request
        for position, (row, tokens) in enumerate(zip(rows.tolist(), taken, strict=True)):
            request = requests[row]
            # The ordinary case stands in the loop: a call would cost as much as what it does.
            if isinstance(tokens, int) or len(tokens) == 1:
                output = request.output_token_ids
                token = tokens if isinstance(tokens, int) else tokens[0]
                output.append(token)
                if token in request.stop_token_ids and len(output) > request.min_tokens:
                    finished.append(position)
                    reasons.append(FinishReason.STOP)
                elif len(output) >= request.max_tokens:
                    finished.append(position)
                    reasons.append(FinishReason.LENGTH)
                continue
            before = len(request.output_token_ids)
            reason = request.take(tokens)
            ragged.append(position)
            num_sampled.append(len(tokens))
            num_taken.append(len(request.output_token_ids) - before)
            if reason is not None:
                taken[position] = tokens[: num_taken[-1]]
                finished.append(position)
                reasons.append(reason)
        return Taken(
            _ones_but(len(rows), ragged, num_sampled),
            _ones_but(len(rows), ragged, num_taken),
            np.array(finished, np.int32),
            np.array(reasons, np.int8),
            taken,
            num_dropped,
        )

    def _running(self, row: int) -> _Running:
        request = self._requests[row]
        assert request is not None
        return request

    def token_ids(self, row: int, start: int) -> Int32Array:
        """Copied from the list."""
        return np.array(self._running(row).output_token_ids[start:], np.int32)

    def retire(self, row: int) -> list[int]:
        """The list itself."""
        request = self._running(row)
        self._requests[row] = None
        return request.output_token_ids


def _ones_but(length: int, positions: list[int], values: list[int]) -> Int32Array:
    ones = np.ones(length, np.int32)
    ones[positions] = values
    return ones

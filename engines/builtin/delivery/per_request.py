"""A loop that gives each request its own tokens and an output object, as vLLM does."""

from collections.abc import Iterable
from itertools import compress
from typing import Any

import numpy as np

from engines.builtin.delivery import CompletionOutput, Delivered, RequestOutput
from engines.builtin.registries import REPRESENTATIONS
from engines.builtin.representations import Representation
from engines.builtin.request_table import NewRequest, RequestTable
from engines.protocol import BoolArray, EngineConfig, FinishReason, Int32Array


class _Request:
    """A running request as the scheduler's loop sees it."""

    __slots__ = ("index", "max_tokens", "output_token_ids", "prompt_token_ids", "stop_token_ids")

    def __init__(self, request: NewRequest) -> None:
        self.index = request.request_index
        self.prompt_token_ids = request.prompt_token_ids
        self.max_tokens = request.max_tokens
        self.stop_token_ids = frozenset(request.stop_token_ids)
        self.output_token_ids: list[int] = []

    def append(self, tokens: int | list[int]) -> FinishReason | None:
        """Take a step's tokens up to the first stop; why the request ended, if it did."""
        output = self.output_token_ids
        for token in (tokens,) if isinstance(tokens, int) else tokens:
            output.append(token)
            if token in self.stop_token_ids:
                return FinishReason.STOP
            if len(output) >= self.max_tokens:
                return FinishReason.LENGTH
        return None


class PerRequest:
    """Requests as objects, their tokens as lists, an output object a request and step."""

    needs_columns = False

    def __init__(self, config: EngineConfig, table: RequestTable) -> None:
        self._representation: Representation = REPRESENTATIONS.load(config.representation)()
        self._requests: list[_Request | None] = [None] * config.max_num_seqs

    def admit(self, row: int, request: NewRequest) -> None:
        self._requests[row] = _Request(request)

    def process(self, rows: Int32Array, sampled: Any, valid: BoolArray | None) -> Delivered:
        requests = self._requests
        outputs: list[RequestOutput] = []
        num_sampled: list[int] = []
        num_kept: list[int] = []
        finished: list[int] = []
        reasons: list[FinishReason] = []
        each: Iterable[int | list[int]] = self._representation.per_request(sampled)
        if valid is not None:
            each = compress(each, valid.tolist())
        for row, tokens in zip(rows.tolist(), each, strict=True):
            count = kept = 1 if isinstance(tokens, int) else len(tokens)
            if count:
                request = requests[row]
                assert request is not None
                before = len(request.output_token_ids)
                reason = request.append(tokens)
                if reason is not None:
                    kept = len(request.output_token_ids) - before
                    finished.append(len(num_sampled))
                    reasons.append(reason)
                    if not isinstance(tokens, int):
                        tokens = tokens[:kept]
                completion = CompletionOutput(0, tokens, reason)
                done = reason is not None
                outputs.append(
                    RequestOutput(request.index, request.prompt_token_ids, [completion], done)
                )
            num_sampled.append(count)
            num_kept.append(kept)
        return Delivered(
            np.array(num_sampled, np.int32),
            np.array(num_kept, np.int32),
            outputs,
            np.array(finished, np.int32),
            np.array(reasons, np.int8),
        )

    def retire(self, row: int) -> list[int]:
        request = self._requests[row]
        assert request is not None
        self._requests[row] = None
        return request.output_token_ids

    def request_output(self, row: int) -> RequestOutput:
        request = self._requests[row]
        assert request is not None
        completion = CompletionOutput(0, list(request.output_token_ids), None)
        return RequestOutput(request.index, request.prompt_token_ids, [completion], False)

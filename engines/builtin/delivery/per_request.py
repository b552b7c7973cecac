"""A loop that gives each request its own tokens and an output object, as vLLM does."""

from collections.abc import Iterable
from itertools import compress
from typing import Any, cast

import numpy as np

from engines.builtin.delivery import Delivered, TokensOnly, stop_token_ids
from engines.builtin.delivery.outputs import CompletionOutput, RequestOutput
from engines.builtin.device.choice import eos_token_ids
from engines.builtin.registries import REPRESENTATIONS
from engines.builtin.representations import Representation
from engines.builtin.request_table import Request, RequestTable
from engines.protocol import BoolArray, EngineConfig, FinishReason, Int32Array


class _Running:
    """A running request as the scheduler's loop sees it."""

    __slots__ = (
        "index", "max_tokens", "min_tokens", "output_token_ids", "prompt_token_ids",
        "stop_token_ids",
    )  # fmt: skip

    def __init__(self, request: Request, eos_token_ids: tuple[int, ...]) -> None:
        params = request.params
        self.index = request.request_index
        self.prompt_token_ids = request.prompt_token_ids
        self.max_tokens = params.max_tokens
        self.min_tokens = params.min_tokens
        self.stop_token_ids = frozenset(stop_token_ids(params, eos_token_ids))
        self.output_token_ids: list[int] = []

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


def _ones_but(length: int, positions: list[int], values: list[int]) -> Int32Array:
    ones = np.ones(length, np.int32)
    ones[positions] = values
    return ones


class PerRequest(TokensOnly):
    """Requests as objects, their tokens as lists, an output object a request and step.

    ``completion`` is what that object is made of, called with index, tokens and reason.
    """

    needs_columns = False

    def __init__(
        self,
        config: EngineConfig,
        table: RequestTable,
        completion: type[CompletionOutput] = CompletionOutput,
    ) -> None:
        self._representation: Representation = REPRESENTATIONS.load(config.representation)()
        self._requests: list[_Running | None] = [None] * config.max_num_seqs
        self._eos_token_ids = eos_token_ids(config)
        self._completion = completion

    def _running(self, row: int) -> _Running:
        request = self._requests[row]
        assert request is not None
        return request

    def admit(self, row: int, request: Request) -> None:
        """Make the request's object, or take up the one that `suspend` gave away."""
        self._requests[row] = request.suspended or _Running(request, self._eos_token_ids)

    def process(
        self, rows: Int32Array, sampled: Any, valid: BoolArray | None, logprobs: Any = None
    ) -> Delivered:
        """Go through the rows one by one."""
        outputs: list[RequestOutput] = []
        ragged: list[int] = []
        num_sampled: list[int] = []
        num_kept: list[int] = []
        finished: list[int] = []
        reasons: list[FinishReason] = []
        each: Iterable[int | list[int]] = self._representation.per_request(sampled)
        if valid is not None:
            each = compress(each, valid.tolist())
        requests = cast("list[_Running]", self._requests)  # a scheduled row has its request
        make_completion = self._completion
        for position, (row, tokens) in enumerate(zip(rows.tolist(), each, strict=True)):
            request = requests[row]
            output = request.output_token_ids
            reason: FinishReason | None = None
            kept = tokens
            # The ordinary case stands in the loop: a call would cost as much as what it does.
            if isinstance(tokens, int) or len(tokens) == 1:
                token = tokens if isinstance(tokens, int) else tokens[0]
                output.append(token)
                if token in request.stop_token_ids and len(output) > request.min_tokens:
                    reason = FinishReason.STOP
                elif len(output) >= request.max_tokens:
                    reason = FinishReason.LENGTH
            else:
                before = len(output)
                reason = request.take(tokens)
                ragged.append(position)
                num_sampled.append(len(tokens))
                num_kept.append(len(output) - before)
                if not tokens:
                    continue
                if reason is not None:
                    kept = tokens[: num_kept[-1]]
            if reason is not None:
                finished.append(position)
                reasons.append(reason)
            completion = make_completion(0, kept, reason)
            outputs.append(
                RequestOutput(
                    request.index, request.prompt_token_ids, [completion], reason is not None
                )
            )
        return Delivered(
            _ones_but(len(rows), ragged, num_sampled),
            _ones_but(len(rows), ragged, num_kept),
            outputs,
            np.array(finished, np.int32),
            np.array(reasons, np.int8),
        )

    def token_list(self, row: int) -> list[int]:
        """The list to which a running request's tokens are appended."""
        return self._running(row).output_token_ids

    def token_ids(self, row: int, start: int) -> Int32Array:
        """Copied from the list."""
        return np.array(self._running(row).output_token_ids[start:], np.int32)

    def suspend(self, row: int) -> _Running:
        """The request's object."""
        request = self._running(row)
        self._requests[row] = None
        return request

    def retire(self, row: int) -> list[int]:
        """The list itself."""
        return self.suspend(row).output_token_ids

    def request_output(self, row: int) -> RequestOutput:
        """All tokens so far, in a list of their own."""
        request = self._running(row)
        completion = self._completion(0, list(request.output_token_ids), None)
        return RequestOutput(request.index, request.prompt_token_ids, [completion], False)

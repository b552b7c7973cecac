"""A `Delivery` that does more than hand tokens over: stages follow it, step by step.

A configuration that asks for nothing more is given the delivery of the tokens itself.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from engines.builtin.delivery import Delivered, Delivery, TokensOnly
from engines.builtin.delivery.outputs import RequestOutput
from engines.builtin.delivery.stage import Stage, Stages, Step
from engines.builtin.request_table import Request
from engines.protocol import BoolArray, Int32Array

if TYPE_CHECKING:
    from engines.builtin.delivery.collector import RequestOutputCollector
    from engines.builtin.logprobs import RequestLogprobs


class _Suspended(NamedTuple):
    tokens: Any
    stages: list[Any]


class OutputProcessor(TokensOnly):
    """A `Delivery` of tokens, and the stages that follow it."""

    def __init__(self, tokens: Delivery, stages: Stages) -> None:
        self.needs_columns = tokens.needs_columns
        self._tokens = tokens
        self._named = stages
        self._stages: list[Stage] = [stage for stage in stages if stage is not None]

    def admit(self, row: int, request: Request) -> None:
        """Start or go on, in every stage."""
        suspended = request.suspended
        if suspended is None:
            self._tokens.admit(row, request)
            for stage in self._stages:
                stage.admit(row, request)
            return
        self._tokens.admit(row, replace(request, suspended=suspended.tokens))
        for stage, own in zip(self._stages, suspended.stages, strict=True):
            stage.resume(row, request, own)

    def process(
        self, rows: Int32Array, sampled: Any, valid: BoolArray | None, logprobs: Any = None
    ) -> Delivered:
        """Tokens first, then each stage."""
        delivered = self._tokens.process(rows, sampled, valid)
        for stage in self._stages:
            delivered = stage.process(Step(rows, delivered, valid, logprobs))
        return delivered

    def token_ids(self, row: int, start: int) -> Int32Array:
        """As the delivery of the tokens has them."""
        return self._tokens.token_ids(row, start)

    def suspend(self, row: int) -> _Suspended:
        """What every stage has of the row."""
        stages = [stage.suspend(row) for stage in self._stages]
        return _Suspended(self._tokens.suspend(row), stages)

    def retire(self, row: int) -> Int32Array | list[int]:
        """The tokens; the rest can be asked for until it is forgotten."""
        for stage in self._stages:
            stage.retire(row)
        return self._tokens.retire(row)

    def request_output(self, row: int) -> RequestOutput:
        """Tokens, text and log-probabilities so far."""
        output = self._tokens.request_output(row)
        for stage in self._stages:
            stage.describe(row, output)
        return output

    def output_text(self, request_index: int) -> str:
        """The whole text. Raises ValueError where there is no detokenizer."""
        stage = self._named.text
        return super().output_text(0) if stage is None else stage.output_text(request_index)

    def output_logprobs(self, request_index: int) -> "RequestLogprobs":
        """All of them. Raises ValueError where there are none."""
        stage = self._named.logprobs
        return super().output_logprobs(0) if stage is None else stage.output_logprobs(request_index)

    def request_stream(self, request_index: int) -> "RequestOutputCollector":
        """The request's own. Raises ValueError where requests have none."""
        stage = self._named.streams
        return super().request_stream(0) if stage is None else stage.request_stream(request_index)

    def forget(self, request_index: int) -> None:
        """In every stage."""
        for stage in self._stages:
            stage.forget(request_index)

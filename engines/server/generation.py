"""The prompts of one HTTP request in the engine, until they end or the client leaves."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from time import perf_counter
from types import TracebackType
from typing import Any, NamedTuple, Self

from engines.builtin.delivery.collector import RequestOutputCollector
from engines.builtin.logprobs import Logprob
from engines.protocol import FinishReason
from engines.server.engine_client import EngineClient
from engines.server.errors import ApiError
from engines.server.metrics import ServerMetrics
from engines.server.prompts import AskedPrompt

FINISH_REASONS = {
    FinishReason.STOP: "stop",
    FinishReason.LENGTH: "length",
    FinishReason.ABORT: "abort",
}


class OutputDelta(NamedTuple):
    """What is new of the ``choice``-th prompt; ``reason``: why that was the last, "" if not."""

    choice: int
    text: str
    token_ids: list[int]
    reason: str
    logprobs: Sequence[dict[int, Logprob]] | None = None


class Generation:
    """A context in which the prompts run; what has not ended with it is aborted.

    Outputs that nobody has taken yet become one, so that a slow reader costs no more than the
    text that it has not read.
    """

    def __init__(
        self,
        client: EngineClient,
        metrics: ServerMetrics,
        asked: Sequence[AskedPrompt],
        numbers: Sequence[int],
        priority: int,
    ) -> None:
        self._client = client
        self._metrics = metrics
        self._asked = asked
        self._numbers = numbers
        self._priority = priority
        self._streams: list[RequestOutputCollector] = []
        self._open: set[int] = set()
        self._began = perf_counter()
        self._first: list[float] = [0.0] * len(asked)
        self.num_prompt_tokens = sum(len(each.prompt) for each in asked if not each.is_copy)
        self.num_tokens = [0] * len(asked)

    def __enter__(self) -> Self:
        for choice, (number, asked) in enumerate(zip(self._numbers, self._asked, strict=True)):
            self._streams.append(
                self._client.add(number, asked.prompt, asked.params, self._priority)
            )
            self._open.add(choice)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for choice in self._open:
            self._client.leave(self._numbers[choice], is_finished=False)
            self._metrics.aborted(len(self._asked[choice].prompt))

    async def deltas(self) -> AsyncGenerator[OutputDelta, None]:
        """As they come, until each prompt has ended.

        Raises ApiError 500 where the engine has died, 503 where the server stops.
        """
        if len(self._streams) == 1:
            while self._open:
                yield self._taken(0, await self._streams[0].get())
            return
        reading = {
            asyncio.ensure_future(stream.get()): choice
            for choice, stream in enumerate(self._streams)
        }
        try:
            while reading:
                ready, _ = await asyncio.wait(reading, return_when=asyncio.FIRST_COMPLETED)
                for each in ready:
                    choice = reading.pop(each)
                    yield self._taken(choice, each.result())
                    if choice in self._open:
                        reading[asyncio.ensure_future(self._streams[choice].get())] = choice
        finally:
            for each in reading:
                each.cancel()

    def _taken(self, choice: int, output: Any) -> OutputDelta:
        completion = output.outputs[0]
        token_ids = completion.token_ids
        if isinstance(token_ids, int):
            token_ids = [token_ids]
        reason = completion.finish_reason if output.finished else None
        if reason is FinishReason.ABORT and self._client.failure:
            raise ApiError(500, f"the engine has died: {self._client.failure}")
        if not self._first[choice]:
            self._first[choice] = perf_counter()
        self.num_tokens[choice] += len(token_ids)
        if reason is not None:
            self._end(choice, reason)
        word = FINISH_REASONS[reason] if reason is not None else ""
        return OutputDelta(choice, completion.text, token_ids, word, completion.logprobs)

    def _end(self, choice: int, reason: FinishReason) -> None:
        self._open.discard(choice)
        is_finished = reason is not FinishReason.ABORT
        self._client.leave(self._numbers[choice], is_finished=is_finished)
        self._metrics.finished(
            FINISH_REASONS[reason],
            num_prompt_tokens=len(self._asked[choice].prompt),
            num_tokens=self.num_tokens[choice],
            ttft=self._first[choice] - self._began,
            latency=perf_counter() - self._began,
        )

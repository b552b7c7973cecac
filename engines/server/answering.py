"""A generation as an answer: whole, or chunk by chunk as server-sent events."""

import asyncio
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import aclosing, suppress
from typing import Any

import msgspec
from aiohttp import web

from engines.server.dialects import Dialect, Extra, WholeOutput
from engines.server.errors import ApiError, internal_error
from engines.server.generation import Generation, OutputDelta
from engines.server.logprobs import NewLogprobs
from engines.server.prompts import AskedPrompt
from engines.server.request_bodies import Generate, StreamOptions
from engines.server.responses import AnswerWithoutUsage, ApiAnswer, Usage

_encode = msgspec.json.Encoder().encode
_NOTHING = Extra()
_DONE = b"data: [DONE]\n\n"


class Answering:
    """Answers one HTTP request. ``asked``: its prompts, in the order of its choices; ``text``: of
    token ids.
    """

    def __init__(
        self,
        dialect: Dialect,
        body: Generate,
        model: str,
        asked: list[AskedPrompt],
        text: Callable[[Sequence[int]], str],
    ) -> None:
        self._dialect = dialect
        self._asked = asked
        self._model = model
        self._text = text
        self._offsets = [0] * len(asked)
        self._options = body.stream_options or StreamOptions()
        self._returns_ids = bool(body.return_token_ids)
        self._id = f"{dialect.id_prefix}{uuid.uuid4().hex}"
        self._created = int(time.time())

    async def whole(self, generation: Generation) -> web.Response:
        """All choices at once."""
        wholes = [WholeOutput(each.echoed, [], "", []) for each in self._asked]
        async with aclosing(generation.deltas()) as deltas:
            async for delta in deltas:
                whole = wholes[delta.choice]
                whole.text += delta.text
                whole.token_ids += delta.token_ids
                whole.reason = delta.reason
                whole.logprobs += delta.logprobs or ()
        choices = [
            self._dialect.choice(index, whole, self._extra(index, whole, is_first=True))
            for index, whole in enumerate(wholes)
        ]
        answer = ApiAnswer(
            id=self._id,
            object=self._dialect.object,
            created=self._created,
            model=self._model,
            choices=choices,
            usage=_usage(generation),
        )
        return web.Response(body=_encode(answer), content_type="application/json")

    async def stream(
        self, request: web.Request, generation: Generation, timeout_seconds: float
    ) -> web.StreamResponse:
        """A chunk for each output, then usage where it is asked for, then ``[DONE]``.

        What goes wrong from now on is an event of its own: the status has been sent.
        """
        response = web.StreamResponse(
            headers={
                "Content-Type": "text/event-stream; charset=utf-8",
                "Cache-Control": "no-cache",
            }
        )
        with suppress(ConnectionError):  # the client has left
            try:
                async with asyncio.timeout(timeout_seconds):
                    await response.prepare(request)
                    await self._write_chunks(response, generation)
            except ApiError as error:
                await _write_error(response, error)
            except ConnectionError:
                raise
            except TimeoutError:
                if response.prepared:
                    await self._give_up(request, response, timeout_seconds)
            except Exception as error:
                await _write_error(response, internal_error(error))
        return response

    async def _write_chunks(self, response: web.StreamResponse, generation: Generation) -> None:
        begun: set[int] = set()
        async with aclosing(generation.deltas()) as deltas:
            async for delta in deltas:
                is_first = delta.choice not in begun
                extra = self._extra(delta.choice, delta, is_first=is_first)
                echoed = self._asked[delta.choice].echoed if is_first else ""
                shown = delta._replace(text=echoed + delta.text)
                usage = None
                if self._options.continuous_usage_stats and self._options.include_usage:
                    usage = Usage.of(
                        len(self._asked[delta.choice].prompt), generation.num_tokens[delta.choice]
                    )
                await response.write(self._events(shown, extra, usage, is_first))
                begun.add(delta.choice)
        last = _DONE
        if self._options.include_usage:
            last = self._event([], _usage(generation)) + _DONE
        await response.write(last)

    async def _give_up(
        self, request: web.Request, response: web.StreamResponse, timeout_seconds: float
    ) -> None:
        """Say so; who does not even read that is cut off."""
        sentence = f"not finished after {timeout_seconds:g} s"
        try:
            async with asyncio.timeout(1):
                await _write_error(response, ApiError(408, sentence))
        except TimeoutError:
            if request.transport is not None:
                request.transport.abort()

    def _events(
        self, delta: OutputDelta, extra: Extra, usage: Usage | None, is_first: bool
    ) -> bytes:
        if not is_first:
            return self._event([self._dialect.chunk(delta, extra)], usage)
        choices = self._dialect.first_chunks(delta, extra)
        return b"".join(self._event([choice], usage) for choice in choices)

    def _event(self, choices: list[Any], usage: Usage | None) -> bytes:
        chunk: ApiAnswer | AnswerWithoutUsage
        name = self._dialect.chunk_object
        if usage is None:
            chunk = AnswerWithoutUsage(
                id=self._id, object=name, created=self._created, model=self._model, choices=choices
            )
        else:
            chunk = ApiAnswer(
                id=self._id,
                object=name,
                created=self._created,
                model=self._model,
                choices=choices,
                usage=usage,
            )
        return b"data: " + _encode(chunk) + b"\n\n"

    def _extra(self, choice: int, new: OutputDelta | WholeOutput, *, is_first: bool) -> Extra:
        asked, extra = self._asked[choice], _NOTHING
        if self._returns_ids:
            extra = Extra(new.token_ids, asked.prompt.tolist() if is_first else None)
        if asked.num_logprobs is None or not new.token_ids:
            return extra
        texts = [self._text([each]) for each in new.token_ids]
        offset = self._offsets[choice]
        self._offsets[choice] += sum(map(len, texts))
        return extra._replace(
            logprobs=NewLogprobs(
                texts, new.token_ids, new.logprobs or (), asked.num_logprobs, offset, self._text
            )
        )


def _usage(generation: Generation) -> Usage:
    return Usage.of(generation.num_prompt_tokens, sum(generation.num_tokens))


async def _write_error(response: web.StreamResponse, error: ApiError) -> None:
    await response.write(b"data: " + error.body() + b"\n\n" + _DONE)

"""One request's pieces read as what they say: HTTP, then events, then tokens and their moments."""

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import httptools

from engines.openai.completion_chunk import NOT_A_CHUNK, Choice, CompletionChunk, decode_chunk
from engines.openai.outcome import Outcome, of_status
from engines.openai.server_sent_events import EventDecoder
from engines.protocol import FinishReason

_MOST_SAID = 300
_FINISH_REASONS = {
    "length": FinishReason.LENGTH,
    "max_tokens": FinishReason.LENGTH,
    "model_length": FinishReason.LENGTH,
    "stop": FinishReason.STOP,
    "tool_calls": FinishReason.STOP,
    "function_call": FinishReason.STOP,
    "eos": FinishReason.STOP,
    "eos_token": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "end_turn": FinishReason.STOP,
}
"""Those of a whole answer: OpenAI's words, and what TGI, Mistral and others say for the same. After
any other (abort, error, content_filter, …) something is missing.
"""


@dataclass(slots=True)
class Response:
    """``delivered_ns``: of each event that brought tokens, its moment. ``token_ids``: all of them,
    where the server says them. ``num_tokens``: as ``usage`` says, or as came. ``message``: what a
    failure says of itself. ``finish_reason``: -1 unless it is completed, which needs one.
    """

    outcome: Outcome
    delivered_ns: "array[int]" = field(default_factory=lambda: array("q"))
    finish_reason: int = -1
    num_tokens: int = 0
    prompt_tokens: int = 0
    token_ids: "array[int]" = field(default_factory=lambda: array("i"))
    text: str = ""
    message: str = ""


def read_response(pieces: Iterable[tuple[int, bytes]], ended: Outcome, asked: int) -> Response:
    """Read ``(stamp_ns, bytes)`` of a request that ended so; ``asked``: its tokens at most.

    A function of these alone: a recording gives the same response again.
    """
    return _Reader(ended).read(pieces, asked)


class _Reader:
    """The parser's target and what has been understood so far."""

    def __init__(self, ended: Outcome) -> None:
        self._ended = ended
        self._parser = httptools.HttpResponseParser(self)
        self._events = EventDecoder()
        self._response = Response(ended)
        self._now_ns = 0
        self._status = 0
        self._said = b""
        self._texts: list[str] = []
        self._closing_ns = 0
        self._is_done = False
        self._usage_tokens: int | None = None
        self._failed: tuple[Outcome, str] | None = None

    def read(self, pieces: Iterable[tuple[int, bytes]], asked: int) -> Response:
        for self._now_ns, piece in pieces:
            try:
                self._parser.feed_data(piece)
            except httptools.HttpParserError as error:
                self._fail(Outcome.MALFORMED, f"not HTTP: {error}")
            if self._failed:
                break
        return self._judged(asked)

    def on_headers_complete(self) -> None:
        """Called by the parser."""
        self._status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        """Called by the parser. What it raises ends the parsing, so it raises nothing."""
        if len(self._said) < _MOST_SAID:
            self._said += body[:_MOST_SAID]
        if self._status != 200 or self._failed:
            return
        for data, name in self._events.feed(body):
            if name == b"error":
                self._fail_with_error(data)
            elif data == b"[DONE]":
                self._is_done = True
            else:
                self._take(data)

    def _take(self, data: bytes) -> None:
        try:
            chunk: CompletionChunk = decode_chunk(data)
        except NOT_A_CHUNK as error:
            self._fail(Outcome.MALFORMED, f"an event is no completion ({error}): {_shown(data)}")
            return
        if chunk.is_error:
            self._fail_with_error(data)
            return
        if chunk.usage is not None:
            self._usage_tokens = chunk.usage.completion_tokens
            self._response.prompt_tokens = chunk.usage.prompt_tokens
        if chunk.choices:
            self._choice(chunk.choices[0])

    def _choice(self, choice: Choice) -> None:
        response = self._response
        said, ids = choice.said, choice.token_ids
        if choice.finish_reason:
            self._finish(choice.finish_reason)
        if ids:
            response.token_ids.extend(ids)
        if said:
            self._texts.append(said)
        if ids or said or not (choice.finish_reason or choice.is_opening):
            response.delivered_ns.append(self._now_ns)
        elif choice.finish_reason:
            self._closing_ns = self._now_ns

    def _finish(self, reason: str) -> None:
        known = _FINISH_REASONS.get(reason.lower())
        if known is not None:
            self._response.finish_reason = known
        elif reason.lower() == "error":
            self._fail(Outcome.SERVER_ERROR, "finish reason error")
        else:
            self._fail(Outcome.CUT_OFF, f"finish reason {reason[:_MOST_SAID]}")

    def _judged(self, asked: int) -> Response:
        response = self._response
        response.text = "".join(self._texts)
        self._count()
        outcome, response.message = self._failed or self._outcome(asked)
        response.outcome = outcome
        if outcome is not Outcome.COMPLETED:
            response.finish_reason = -1
        return response

    def _count(self) -> None:
        response = self._response
        came = len(response.token_ids) or len(response.delivered_ns)
        if self._usage_tokens is None:
            response.num_tokens = came
            return
        response.num_tokens = self._usage_tokens
        # An event with nothing but a finish reason: of a last token without text, where one is
        # missing, as vLLM's of an end-of-sequence token; else of no token, as llama.cpp's.
        if self._closing_ns and came == self._usage_tokens - 1 and not response.token_ids:
            response.delivered_ns.append(self._closing_ns)

    def _outcome(self, asked: int) -> tuple[Outcome, str]:
        response, ended = self._response, self._ended
        if self._status not in (0, 200) and ended in (Outcome.COMPLETED, Outcome.CLOSED_EARLY):
            return of_status(self._status), f"status {self._status}: {_shown(self._said)}"
        # A stream whose length nobody has said ends with its connection.
        if ended is Outcome.CLOSED_EARLY and self._is_done:
            ended = Outcome.COMPLETED
        if ended is not Outcome.COMPLETED:
            return ended, ""
        if response.finish_reason < 0:
            if not response.delivered_ns and not self._is_done:
                return Outcome.MALFORMED, f"no event in the answer: {_shown(self._said)}"
            return Outcome.CLOSED_EARLY, "the answer ended without a finish reason"
        return self._counted(asked)

    def _counted(self, asked: int) -> tuple[Outcome, str]:
        response, usage = self._response, self._usage_tokens
        ids, events = len(response.token_ids), len(response.delivered_ns)
        if usage is not None and (ids or events > usage) and (ids or events) != usage:
            return Outcome.COUNT_MISMATCH, f"usage says {usage} tokens, {ids or events} came"
        is_cut = response.finish_reason == FinishReason.LENGTH and (usage is not None or ids > 0)
        if response.num_tokens > asked or (is_cut and response.num_tokens != asked):
            return Outcome.COUNT_MISMATCH, f"{response.num_tokens} tokens where {asked} were asked"
        if not response.num_tokens or not events:
            return Outcome.COUNT_MISMATCH, "no token came"
        return Outcome.COMPLETED, ""

    def _fail_with_error(self, data: bytes) -> None:
        self._fail(Outcome.SERVER_ERROR, f"an error in the stream: {_shown(data)}")

    def _fail(self, outcome: Outcome, message: str) -> None:
        self._failed = self._failed or (outcome, message)


def _shown(data: Any) -> str:
    return bytes(data[:_MOST_SAID]).decode(errors="replace")

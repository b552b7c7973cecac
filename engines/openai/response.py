"""One request's pieces read as what they say: HTTP, then events, then tokens and their moments."""

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import httptools

from engines.openai.outcome import WHOLE, Outcome, of_status
from engines.openai.server_sent_events import EventDecoder
from engines.openai.stream_event import REASONING, Kind, StreamEvent, read_event
from engines.protocol import FinishReason

_MOST_SAID = 1500
"""Bytes that are quoted of what a server says of a failure."""
_FINISH_REASONS = dict.fromkeys(
    ("length", "max_tokens", "max_length", "max_output_tokens", "model_length"), FinishReason.LENGTH
) | dict.fromkeys(
    (
        "stop",
        "complete",
        "completed",
        "end_turn",
        "eos",
        "eos_token",
        "function_call",
        "stop_sequence",
        "tool_call",
        "tool_calls",
        "tool_use",
    ),
    FinishReason.STOP,
)
"""Those of a whole answer: OpenAI's words, and what TGI, Mistral, Anthropic and others say for the
same. After any other (abort, error, content_filter, …) something is missing.
"""
_CONTEXT_REASONS = ("model_length", "model_context_window_exceeded", "context_length_exceeded")


_OF_NOTHING = (Kind.BLANK, Kind.USAGE, Kind.KEEP_ALIVE)


class CountSource(IntEnum):
    """Who says how many tokens an answer has; `NO_TOKENS`: it is an embedding, and has none."""

    UNKNOWN = 0
    TOKEN_IDS = 1
    USAGE = 2
    TOKENIZER = 3
    NO_TOKENS = 4


UNKNOWN_COUNT = -1
"""Of an answer whose number of tokens nobody has said: events are no tokens."""


def count_words(num_tokens: int) -> str:
    """A number of tokens in a sentence."""
    return "an unknown number" if num_tokens == UNKNOWN_COUNT else f"{num_tokens}"


@dataclass(slots=True)
class Response:
    """``delivered_ns``: of each event that brought tokens, its moment; ``first_answer_ns``: of the
    first that brought more than reasoning, 0 for none. ``token_ids``: all, where the server says
    them. ``num_tokens``: as ``counted_by`` says, or `UNKNOWN_COUNT`; ``usage_tokens``: as ``usage``
    says, if it does. ``kinds``: how many events were of each `Kind`. ``message``: what a failure
    says of itself. ``finish_reason``: -1 unless the answer is whole, which needs one.
    """

    outcome: Outcome
    delivered_ns: "array[int]" = field(default_factory=lambda: array("q"))
    first_answer_ns: int = 0
    finish_reason: int = -1
    num_tokens: int = UNKNOWN_COUNT
    counted_by: CountSource = CountSource.UNKNOWN
    usage_tokens: int = UNKNOWN_COUNT
    prompt_tokens: int = 0
    token_ids: "array[int]" = field(default_factory=lambda: array("i"))
    text: str = ""
    message: str = ""
    kinds: list[int] = field(default_factory=lambda: [0] * len(Kind))


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
        # Moments of empty texts, before the first token and after it.
        self._blank_ns: tuple[list[int], list[int]] = ([], [])
        self._closing_ns = 0
        self._is_done = False
        self._is_context_full = False
        self._unknown = b""
        self._failed: tuple[Outcome, str] | None = None

    def read(self, pieces: Iterable[tuple[int, bytes]], asked: int) -> Response:
        for self._now_ns, piece in pieces:
            try:
                self._parser.feed_data(piece)
            except httptools.HttpParserError as error:
                self._fail(Outcome.MALFORMED, f"not HTTP: {error}")
            if self._failed:
                break
        if self._is_read:
            self._rest()
        return self._judged(asked)

    def on_headers_complete(self) -> None:
        """Called by the parser."""
        self._status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        """Called by the parser. What it raises ends the parsing, so it raises nothing."""
        if len(self._said) < _MOST_SAID:
            self._said += body[:_MOST_SAID]
        if self._is_read:
            for data, name in self._events.feed(body):
                self._read_event(data, name)

    @property
    def _is_read(self) -> bool:
        return self._status // 100 == 2 and not self._failed

    def _rest(self) -> None:
        """What no blank line has ended counts where it is whole."""
        for data, name in self._events.end():
            try:
                self._take(read_event(data, name), data)
            except ValueError:
                return

    def _read_event(self, data: bytes, name: bytes) -> None:
        try:
            self._take(read_event(data, name), data)
        except ValueError as error:
            if b"\n" in data:  # of two events the blank line between them is missing
                for line in data.split(b"\n"):
                    self._read_event(line, name)
                return
            self._fail(Outcome.MALFORMED, f"an event is no JSON ({error}): {_shown(data)}")

    def _take(self, event: StreamEvent, data: bytes) -> None:
        kind = event.kind
        if self._count_rose(event):
            kind = Kind.TOKEN
        elif event.opens and kind in _OF_NOTHING and not self._response.delivered_ns:
            kind = Kind.OPENING
        self._response.kinds[kind] += 1
        if event.reason:
            self._finish(event.reason)
        match kind:
            case Kind.TOKEN:
                self._token(event)
            case Kind.BLANK:
                self._blank_ns[len(self._response.delivered_ns) > 0].append(self._now_ns)
            case Kind.CLOSING:
                self._closing_ns = self._now_ns
            case Kind.EMBEDDING:
                self._token(event)
                self._response.finish_reason = FinishReason.STOP
            case Kind.ERROR:
                self._fail(Outcome.SERVER_ERROR, f"an error in the stream: {_shown(data)}")
            case Kind.DONE:
                self._is_done = True
            case Kind.UNKNOWN:
                self._unknown = self._unknown or data[:_MOST_SAID]

    def _count_rose(self, event: StreamEvent) -> bool:
        """Keep what usage says; whether an event about an answer brought tokens by it.

        It does where all tokens so far stood in an event before: some servers say them in each.
        """
        usage, response = event.usage, self._response
        if usage is None:
            return False
        response.prompt_tokens = usage.prompt_tokens or response.prompt_tokens
        if usage.completion_tokens is None:
            return False
        before = response.usage_tokens
        response.usage_tokens = max(before, usage.completion_tokens)
        counts_each = before >= len(response.delivered_ns)  # not nothing until the last one
        return event.has_choice and counts_each and before < response.usage_tokens

    def _token(self, event: StreamEvent) -> None:
        response = self._response
        response.delivered_ns.append(self._now_ns)
        response.token_ids.extend(event.token_ids)
        self._texts.append(event.said)
        if event.content != REASONING and not response.first_answer_ns:
            response.first_answer_ns = self._now_ns

    def _finish(self, reason: str) -> None:
        word = reason.lower()
        if word in _CONTEXT_REASONS:
            self._response.finish_reason = FinishReason.LENGTH
            self._is_context_full = True
        elif word in _FINISH_REASONS:
            self._response.finish_reason = _FINISH_REASONS[word]
        elif word == "error":
            self._fail(Outcome.SERVER_ERROR, "finish reason error")
        else:
            self._fail(Outcome.CUT_OFF, f"finish reason {reason[:_MOST_SAID]}")

    def _judged(self, asked: int) -> Response:
        response = self._response
        response.text = "".join(self._texts)
        self._count()
        response.outcome, response.message = self._failed or self._outcome(asked)
        if response.outcome not in WHOLE:
            response.finish_reason = -1
        return response

    def _count(self) -> None:
        response, usage = self._response, self._response.usage_tokens
        if response.kinds[Kind.EMBEDDING]:
            response.counted_by, response.usage_tokens = CountSource.NO_TOKENS, UNKNOWN_COUNT
            return
        if response.token_ids:
            response.num_tokens, response.counted_by = (
                len(response.token_ids),
                CountSource.TOKEN_IDS,
            )
            return
        self._place_blanks()
        if usage > 0 or (usage == 0 and not response.delivered_ns):
            response.num_tokens, response.counted_by = usage, CountSource.USAGE

    def _place_blanks(self) -> None:
        """Take empty texts for tokens without text where usage has just so many more.

        The same for a finish reason without text: with some servers it is the last token's.
        """
        before, after = self._blank_ns
        closing = [self._closing_ns] if self._closing_ns else []
        missing = self._response.usage_tokens - len(self._response.delivered_ns)
        for some in (closing, [*after, *closing], after):
            leading = before if some is not closing else []
            if missing > 0 and missing == len(some) + len(leading):
                delivered = self._response.delivered_ns
                # The first token is the first content, unless there is none.
                added = some if delivered else [*leading, *some]
                self._response.delivered_ns = array("q", sorted([*delivered, *added]))
                return

    def _outcome(self, asked: int) -> tuple[Outcome, str]:
        response, ended = self._response, self._ended
        is_over = ended in (Outcome.COMPLETED, Outcome.CLOSED_EARLY)
        if self._status and self._status // 100 != 2 and is_over:
            return of_status(self._status), f"status {self._status}: {_shown(self._said)}"
        # A stream whose length nobody has said ends with its connection.
        if ended is Outcome.CLOSED_EARLY and self._is_done:
            ended = Outcome.COMPLETED
        if ended is not Outcome.COMPLETED:
            return ended, ""
        if response.finish_reason < 0 or not response.delivered_ns:
            return self._unfinished()
        is_cut = response.finish_reason == FinishReason.LENGTH and 0 <= response.num_tokens < asked
        if is_cut or self._is_context_full:
            said = count_words(response.num_tokens)
            return Outcome.CONTEXT_FULL, f"{said} of {asked} tokens, finish reason length"
        return Outcome.COMPLETED, ""

    def _unfinished(self) -> tuple[Outcome, str]:
        """A message that is whole, and an answer that is not."""
        response = self._response
        unread = f"; not understood: {_shown(self._unknown)}" if self._unknown else ""
        if response.finish_reason >= 0:
            return Outcome.EMPTY, f"no token came{unread}"
        if response.delivered_ns or self._is_done:
            return Outcome.CLOSED_EARLY, f"the answer ended without a finish reason{unread}"
        return Outcome.MALFORMED, f"no event in the answer: {_shown(self._said)}"

    def _fail(self, outcome: Outcome, message: str) -> None:
        self._failed = self._failed or (outcome, message)


def _shown(data: Any) -> str:
    return bytes(data[:_MOST_SAID]).decode(errors="replace")

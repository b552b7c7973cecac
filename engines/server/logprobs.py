"""Log-probabilities of a choice's new tokens, as clients get them of completions and of chats."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import msgspec

from engines.builtin.logprobs import Logprob

_LEAST = -9999.0
"""In the place of minus infinity, which JSON has not; vLLM's."""


class NewLogprobs(NamedTuple):
    """``texts`` of the new tokens; ``positions``: of each the sampled one's and the most probable
    ones', by id, ``shown`` of these at most. ``offset``: characters of the tokens before.
    """

    texts: Sequence[str]
    token_ids: Sequence[int]
    positions: Sequence[dict[int, Logprob]]
    shown: int
    offset: int
    text: Callable[[Sequence[int]], str]

    def rows(self) -> Iterator[tuple[str, float, list[tuple[str, float]]]]:
        """A token's text and log-probability, and those of the tokens in its place."""
        for text, token_id, found in zip(self.texts, self.token_ids, self.positions, strict=True):
            others = [(self.text([each]), max(one.logprob, _LEAST)) for each, one in found.items()]
            yield text, max(found[token_id].logprob, _LEAST), others


class CompletionLogprobs(msgspec.Struct):
    """An entry per token; ``top_logprobs`` has the sampled token and ``logprobs`` others."""

    text_offset: list[int]
    token_logprobs: list[float]
    tokens: list[str]
    top_logprobs: list[dict[str, float]]

    @staticmethod
    def of(new: NewLogprobs | None) -> "CompletionLogprobs | None":
        """It, None where nobody has asked."""
        if new is None:
            return None
        made, offset = CompletionLogprobs([], [], [], []), new.offset
        for text, logprob, others in new.rows():
            made.text_offset.append(offset)
            made.token_logprobs.append(logprob)
            made.tokens.append(text)
            made.top_logprobs.append(dict(others[: new.shown + 1]))
            offset += len(text)
        return made


class ChatLogprob(msgspec.Struct):
    """``bytes``: of the token's UTF-8."""

    token: str
    logprob: float
    bytes: list[int]


class ChatTokenLogprob(ChatLogprob):
    """Of a token, and the most probable in its place."""

    top_logprobs: list[ChatLogprob]


class ChatLogprobs(msgspec.Struct):
    """Of a chat's message or delta."""

    content: list[ChatTokenLogprob]

    @staticmethod
    def of(new: NewLogprobs | None) -> "ChatLogprobs | None":
        """It, None where nobody has asked."""
        if new is None:
            return None
        return ChatLogprobs(
            [
                ChatTokenLogprob(
                    text,
                    logprob,
                    list(text.encode()),
                    [
                        ChatLogprob(each, one, list(each.encode()))
                        for each, one in islice(others, new.shown)
                    ],
                )
                for text, logprob, others in new.rows()
            ]
        )

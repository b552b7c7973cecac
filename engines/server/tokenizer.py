"""Text to token ids and back, and a conversation to text."""

import asyncio
from collections.abc import Sequence

from engines.server.errors import ApiError
from engines.server.request_bodies import ChatTurn
from engines.vocabulary import load_tokenizer

_LONG = 20_000
"""Characters. Of so many a thread takes care: they would hold up every stream for milliseconds."""


class TextTokenizer:
    """The tokenizer of one ``tokenizer.json``. Raises ValueError where it is none."""

    def __init__(self, tokenizer: str) -> None:
        self._tokenizer = load_tokenizer(tokenizer)
        vocabulary = self._tokenizer.get_vocab(with_added_tokens=True)
        self.longest_token = max(map(len, vocabulary)) if not self._tokenizer.normalizer else 0
        """Characters that one token can stand for at most; 0 where that is not known."""
        self.num_ids = max(vocabulary.values()) + 1

    async def encode(self, *texts: str) -> list[list[int]]:
        """Token ids of each, special ones at its ends where the tokenizer adds them."""
        if sum(map(len, texts)) < _LONG:
            return self._encode(texts)
        return await asyncio.to_thread(self._encode, texts)

    def _encode(self, texts: Sequence[str]) -> list[list[int]]:
        return [self._tokenizer.encode(each).ids for each in texts]

    def decode(self, token_ids: Sequence[int]) -> str:
        """Their text; ids that are no tokens have none."""
        known = [each for each in token_ids if each < self.num_ids]
        text: str = self._tokenizer.decode(known, skip_special_tokens=True)
        return text


def conversation(messages: Sequence[ChatTurn]) -> str:
    """The messages as one prompt: a line "ROLE: CONTENT" each, then "assistant:".

    Raises ApiError 400 where a part is no text.
    """
    return "".join(f"{each.role}: {_text(each)}\n" for each in messages) + "assistant:"


def _text(message: ChatTurn) -> str:
    content = message.content
    if content is None or isinstance(content, str):
        return content or ""
    for part in content:
        if part.type != "text" or part.text is None:
            raise ApiError(
                400, f"a part of type {part.type!r}: only text can be read", param="messages"
            )
    return "".join(part.text or "" for part in content)

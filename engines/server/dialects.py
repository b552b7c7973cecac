"""Completions and chats: what one and the same generation looks like to the client."""

from typing import Any, NamedTuple, Protocol

import msgspec

from engines.builtin.logprobs import Logprob
from engines.server.generation import OutputDelta
from engines.server.logprobs import ChatLogprobs, CompletionLogprobs, NewLogprobs
from engines.server.prompts import AskedPrompt, Prompts
from engines.server.request_bodies import ChatBody, CompletionBody, Generate
from engines.server.responses import (
    ChatChoice,
    ChatChunkChoice,
    ChatDelta,
    ChatMessage,
    CompletionChoice,
)


class Extra(NamedTuple):
    """What a choice says of its tokens where that is asked for."""

    token_ids: list[int] | None = None
    prompt_token_ids: list[int] | None = None
    logprobs: NewLogprobs | None = None


class WholeOutput(msgspec.Struct):
    """All of a choice's output."""

    text: str
    token_ids: list[int]
    reason: str
    logprobs: list[dict[int, Logprob]]


class Dialect(Protocol):
    """``id_prefix`` and the names of its objects are OpenAI's."""

    id_prefix: str
    object: str
    chunk_object: str

    @property
    def body(self) -> type[Generate]:
        """What it reads."""
        ...

    async def asked(self, prompts: Prompts, body: Any) -> list[AskedPrompt]:
        """What a body asks for. Raises ApiError 400."""
        ...

    def first_chunks(self, delta: OutputDelta, extra: Extra) -> list[Any]:
        """The choices of the first chunks of a choice."""
        ...

    def chunk(self, delta: OutputDelta, extra: Extra) -> Any:
        """The choice of any other chunk."""
        ...

    def choice(self, index: int, whole: WholeOutput, extra: Extra) -> Any:
        """A choice of an answer that is not streamed."""
        ...


class Completions:
    """``/v1/completions``."""

    id_prefix = "cmpl-"
    object = chunk_object = "text_completion"
    body = CompletionBody

    async def asked(self, prompts: Prompts, body: CompletionBody) -> list[AskedPrompt]:
        """A choice for each that is wanted of each prompt."""
        return await prompts.of_completion(body)

    def first_chunks(self, delta: OutputDelta, extra: Extra) -> list[CompletionChoice]:
        """As any other."""
        return [self.chunk(delta, extra)]

    def chunk(self, delta: OutputDelta, extra: Extra) -> CompletionChoice:
        """The new text."""
        return self._choice(delta.choice, delta.text, delta.reason, extra)

    def choice(self, index: int, whole: WholeOutput, extra: Extra) -> CompletionChoice:
        """The text."""
        return self._choice(index, whole.text, whole.reason, extra)

    @staticmethod
    def _choice(index: int, text: str, reason: str, extra: Extra) -> CompletionChoice:
        return CompletionChoice(
            index=index,
            text=text,
            finish_reason=reason or None,
            logprobs=CompletionLogprobs.of(extra.logprobs),
            stop_reason=None,
            token_ids=extra.token_ids,
            prompt_token_ids=extra.prompt_token_ids,
        )


class Chats:
    """``/v1/chat/completions``."""

    id_prefix = "chatcmpl-"
    object = "chat.completion"
    chunk_object = "chat.completion.chunk"
    body = ChatBody

    async def asked(self, prompts: Prompts, body: ChatBody) -> list[AskedPrompt]:
        """A choice for each that is wanted."""
        return await prompts.of_chat(body)

    def first_chunks(self, delta: OutputDelta, extra: Extra) -> list[ChatChunkChoice]:
        """Who speaks, then the new text."""
        role = ChatChunkChoice(
            index=delta.choice, delta=ChatDelta("assistant", ""), finish_reason=None, logprobs=None
        )
        return [role, self.chunk(delta, extra)]

    def chunk(self, delta: OutputDelta, extra: Extra) -> ChatChunkChoice:
        """The new text."""
        return ChatChunkChoice(
            index=delta.choice,
            delta=ChatDelta(content=delta.text),
            finish_reason=delta.reason or None,
            logprobs=ChatLogprobs.of(extra.logprobs),
            token_ids=extra.token_ids,
            prompt_token_ids=extra.prompt_token_ids,
        )

    def choice(self, index: int, whole: WholeOutput, extra: Extra) -> ChatChoice:
        """The text."""
        return ChatChoice(
            index=index,
            message=ChatMessage("assistant", whole.text),
            finish_reason=whole.reason or None,
            logprobs=ChatLogprobs.of(extra.logprobs),
            stop_reason=None,
            token_ids=extra.token_ids,
            prompt_token_ids=extra.prompt_token_ids,
        )

"""What clients get: OpenAI's objects, vLLM's fields beside them."""

from typing import Any

import msgspec

from engines.server.logprobs import ChatLogprobs, CompletionLogprobs


class Usage(msgspec.Struct):
    """In tokens."""

    prompt_tokens: int
    total_tokens: int
    completion_tokens: int

    @staticmethod
    def of(num_prompt_tokens: int, num_tokens: int) -> "Usage":
        """Their sum beside them."""
        return Usage(num_prompt_tokens, num_prompt_tokens + num_tokens, num_tokens)


class TokenIds(msgspec.Struct, omit_defaults=True):
    """Of choices, where `return_token_ids` asks for them."""

    token_ids: list[int] | None = None
    prompt_token_ids: list[int] | None = None


class CompletionChoice(TokenIds, kw_only=True):
    """Of a completion, or of a chunk of one."""

    index: int
    text: str
    finish_reason: str | None
    logprobs: CompletionLogprobs | None
    stop_reason: None


class ApiAnswer(msgspec.Struct, kw_only=True):
    """A whole answer or a chunk; ``object`` says of what."""

    id: str
    object: str
    created: int
    model: str
    choices: list[Any]
    usage: Usage | None


class AnswerWithoutUsage(msgspec.Struct, kw_only=True):
    """A chunk of a chat, which has no usage unless it was asked for."""

    id: str
    object: str
    created: int
    model: str
    choices: list[Any]


class ChatDelta(msgspec.Struct, omit_defaults=True):
    """What is new of a message."""

    role: str | None = None
    content: str | None = None


class ChatMessage(msgspec.Struct):
    """A whole one."""

    role: str
    content: str


class ChatChunkChoice(TokenIds, kw_only=True):
    """Of a chunk of a chat."""

    index: int
    delta: ChatDelta
    finish_reason: str | None
    logprobs: ChatLogprobs | None


class ChatChoice(TokenIds, kw_only=True):
    """Of a chat."""

    index: int
    message: ChatMessage
    finish_reason: str | None
    logprobs: ChatLogprobs | None
    stop_reason: None


class ModelCard(msgspec.Struct, kw_only=True):
    """The one that is served."""

    id: str
    object: str = "model"
    created: int
    owned_by: str = "gcbench"
    root: str
    parent: None = None
    max_model_len: int


class Models(msgspec.Struct):
    """All of them."""

    data: list[ModelCard]
    object: str = "list"


class Tokens(msgspec.Struct):
    """Of a text."""

    count: int
    max_model_len: int
    tokens: list[int]


class Text(msgspec.Struct):
    """Of tokens."""

    prompt: str


class Version(msgspec.Struct):
    """gcbench's."""

    version: str

"""What one event of a completion says, as far as gcbench reads it: of text or of a chat."""

from typing import Any

import msgspec


class Delta(msgspec.Struct, gc=False):
    """What a chat's event adds. ``reasoning`` and its longer name: as vLLM and others send it."""

    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    role: str | None = None

    @property
    def text(self) -> str:
        """All that was said."""
        return (self.reasoning_content or self.reasoning or "") + (self.content or "")


class Choice(msgspec.Struct, gc=False):
    """``token_ids`` come where the server knows ``return_token_ids``.

    ``finish_reason`` is "" with some servers as long as there is none.
    """

    text: str | None = None
    delta: Delta | None = None
    token_ids: list[int] | None = None
    finish_reason: str | None = None

    @property
    def said(self) -> str:
        """The text that it brings."""
        return self.delta.text if self.delta is not None else self.text or ""

    @property
    def is_opening(self) -> bool:
        """Whether it names the role and nothing else: a chat's stream may begin so."""
        return self.delta is not None and bool(self.delta.role) and not self.delta.text


class StreamUsage(msgspec.Struct, gc=False):
    """Tokens of a request."""

    prompt_tokens: int = 0
    completion_tokens: int = 0


class CompletionChunk(msgspec.Struct, gc=False):
    """An event. ``object`` and ``type`` name what it is."""

    choices: list[Choice] = []
    usage: StreamUsage | None = None
    error: Any = None
    object: Any = None
    type: Any = None

    @property
    def is_error(self) -> bool:
        """Which servers say in one of three ways."""
        return self.error is not None or self.object == "error" or self.type == "error"


decode_chunk = msgspec.json.Decoder(CompletionChunk).decode
"""Raises msgspec.DecodeError and its kin, UnicodeDecodeError, RecursionError."""

NOT_A_CHUNK = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)

"""What clients send: OpenAI's fields, vLLM's beside them; any other field is ignored."""

import re
from typing import Annotated, Any, TypeVar

import msgspec

from engines.server.errors import ApiError

Natural = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
PromptTokenIds = list[Natural]
_StopString = Annotated[str, msgspec.Meta(min_length=1, max_length=1024)]
_StopStrings = Annotated[list[_StopString], msgspec.Meta(max_length=64)]
_Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)]
_Seed = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_Penalty = Annotated[float, msgspec.Meta(ge=-2, le=2)]
_Copies = Annotated[int, msgspec.Meta(ge=1, le=1024)]


class StreamOptions(msgspec.Struct):
    """``continuous_usage_stats``: usage with every chunk, as vLLM has it."""

    include_usage: bool | None = None
    continuous_usage_stats: bool | None = None


class ResponseFormat(msgspec.Struct):
    """How an answer shall be formed; only text can be."""

    type: str


class Generate(msgspec.Struct, kw_only=True):
    """What completions and chats have in common.

    Penalties and ``min_p`` are checked and not heeded.
    """

    model: str | None = None
    max_tokens: Natural | None = None
    min_tokens: Natural | None = 0
    ignore_eos: bool | None = False
    stop: _StopString | _StopStrings | None = None
    stop_token_ids: Annotated[PromptTokenIds, msgspec.Meta(max_length=4096)] | None = None
    include_stop_str_in_output: bool | None = False
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None
    top_k: Annotated[int, msgspec.Meta(ge=-1, lt=2**31)] | None = None
    min_p: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    frequency_penalty: _Penalty | None = None
    presence_penalty: _Penalty | None = None
    repetition_penalty: Annotated[float, msgspec.Meta(gt=0)] | None = None
    seed: _Seed | None = None
    priority: _Int32 | None = 0
    n: _Copies | None = 1
    response_format: ResponseFormat | None = None
    structured_outputs: Any = None
    logit_bias: Any = None
    prompt_logprobs: Any = None
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    return_token_ids: bool | None = False

    def unsupported(self) -> dict[str, Any]:
        """Fields that ask for what there is not, by name, where they do."""
        form = self.response_format
        asked = {
            "response_format": form.type if form is not None and form.type != "text" else None,
            "structured_outputs": self.structured_outputs,
            "logit_bias": self.logit_bias or None,
            "prompt_logprobs": self.prompt_logprobs,
        }
        return {name: value for name, value in asked.items() if value is not None}


class CompletionBody(Generate, kw_only=True):
    """``/v1/completions``. ``prompt``: text, texts, token ids or lists of them."""

    prompt: str | list[str | Natural | PromptTokenIds]
    logprobs: int | None = None
    echo: bool | None = False
    suffix: str | None = None
    best_of: int | None = None

    @property
    def num_logprobs(self) -> int | None:
        """The most probable tokens to show beside each, None for no log-probabilities."""
        return self.logprobs

    def unsupported(self) -> dict[str, Any]:
        """These, too."""
        # An echo's log-probabilities are the prompt's, which nobody computes.
        asked: dict[str, Any] = {"suffix": self.suffix}
        if self.echo and self.logprobs is not None:
            asked["echo with logprobs"] = self.logprobs
        if self.best_of != 1:
            asked["best_of"] = self.best_of
        return Generate.unsupported(self) | {
            name: value for name, value in asked.items() if value is not None
        }


class ContentPart(msgspec.Struct):
    """A part of a message; only text can be read."""

    type: str
    text: str | None = None


class ChatTurn(msgspec.Struct):
    """A turn of a conversation."""

    role: str
    content: str | list[ContentPart] | None = None


class ChatBody(Generate, kw_only=True):
    """``/v1/chat/completions``."""

    messages: Annotated[list[ChatTurn], msgspec.Meta(min_length=1)]
    max_completion_tokens: Natural | None = None
    logprobs: bool | None = False
    top_logprobs: int | None = None
    tools: list[Any] | None = None
    tool_choice: Any = None

    @property
    def num_logprobs(self) -> int | None:
        """As of `CompletionBody`. Raises ApiError 400."""
        if self.top_logprobs and not self.logprobs:
            raise ApiError(400, "top_logprobs without logprobs", param="top_logprobs")
        return self.top_logprobs or 0 if self.logprobs else None

    def unsupported(self) -> dict[str, Any]:
        """These, too."""
        asked: dict[str, Any] = {}
        if self.tool_choice != "none":
            asked |= {"tools": self.tools, "tool_choice": self.tool_choice}
        return Generate.unsupported(self) | {name: each for name, each in asked.items() if each}


class TokenizeBody(msgspec.Struct):
    """``/tokenize``: a text, or a conversation."""

    prompt: str | None = None
    messages: list[ChatTurn] | None = None
    model: str | None = None


class DetokenizeBody(msgspec.Struct):
    """``/detokenize``."""

    tokens: PromptTokenIds
    model: str | None = None


Body = TypeVar("Body")

_HALF = re.compile(rb"\\u[dD][89abAB]..(?!\\u[dD][c-fC-F])")
"""An escape of a surrogate that lacks the second one."""


def decode(data: bytes, kind: type[Body]) -> Body:
    """Read a body, numbers as texts too. Raises ApiError 400 that names the field."""
    try:
        return msgspec.json.decode(data, type=kind, strict=False)
    except msgspec.ValidationError as error:
        sentence, _, path = str(error).partition(" - at `$")
        param = path.lstrip(".").rstrip("`") or _missing(sentence)
        raise ApiError(400, str(error), param=param) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        # Of an escape without its second half msgspec says that the end is missing.
        why = "half a surrogate pair in a text" if _HALF.search(data) else str(error)
        raise ApiError(400, f"the body is no JSON: {why}") from None


def _missing(sentence: str) -> str | None:
    """The field in "Object missing required field `prompt`"."""
    return sentence.split("`")[1] if "required field" in sentence else None

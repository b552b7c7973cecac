"""Requests of the OpenAI API as the bytes that go out, made before a run begins."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

import msgspec
import numpy as np

from engines.openai.target import EMBEDDINGS, Target
from engines.protocol import Int32Array, SamplingParams

PromptAs = Literal["ids", "text", "chat"]
Prompt = str | list[dict[str, str]]
PROMPT_FORMS: tuple[str, ...] = get_args(PromptAs)

_WORDS = (
    "the",
    "of",
    "and",
    "to",
    "in",
    "is",
    "was",
    "for",
    "that",
    "on",
    "as",
    "with",
    "by",
    "at",
    "from",
    "his",
    "it",
    "an",
    "were",
    "which",
    "are",
    "this",
    "also",
    "be",
    "had",
    "or",
    "has",
    "first",
    "one",
    "their",
    "its",
    "new",
    "after",
    "who",
    "they",
    "two",
    "her",
    "she",
    "been",
    "other",
    "when",
    "time",
    "there",
    "into",
    "all",
    "may",
    "more",
    "years",
    "over",
    "only",
)
"""Words that are one token each in the usual vocabularies, so that as many make about as many."""


class Question(NamedTuple):
    """What all requests of a run have in common.

    ``standard_fields``: whether to leave out what only some servers know (``ignore_eos``,
    ``min_tokens``, ``return_token_ids``, ``priority``). ``extra_body``: fields to set in every
    request; None takes one away, "$max_tokens" stands for a request's own. ``headers``: lines.
    """

    model: str
    prompt_as: PromptAs = "ids"
    standard_fields: bool = False
    extra_body: Mapping[str, Any] = {}
    api_key: str = ""
    headers: Sequence[str] = ()

    @property
    def path(self) -> str:
        """Behind that of the API."""
        return "/chat/completions" if self.prompt_as == "chat" else "/completions"


def request_bytes(
    target: Target,
    question: Question,
    prompt_token_ids: Int32Array,
    params: SamplingParams,
    priority: int = 0,
    own: Prompt | None = None,
) -> bytes:
    """A whole HTTP/1.1 request that asks for a stream with usage at its end, or for an embedding.

    ``own``: a text or a chat's messages in the place of what token ids come to.
    """
    fields: dict[str, Any] = {"model": question.model}
    asked = _prompt(question.prompt_as, prompt_token_ids, own)
    if target.embeds:
        fields |= {"input" if name == "prompt" else name: each for name, each in asked.items()}
    else:
        fields |= asked | _sampling(params, standard_fields=question.standard_fields)
    if priority and not question.standard_fields:
        fields["priority"] = priority
    fields |= {
        name: params.max_tokens if each == "$max_tokens" else each
        for name, each in question.extra_body.items()
    }
    body = msgspec.json.encode({name: each for name, each in fields.items() if each is not None})
    key = f"Authorization: Bearer {question.api_key}\r\n" if question.api_key else ""
    more = "".join(f"{each}\r\n" for each in question.headers)
    path = EMBEDDINGS if target.embeds else question.path
    head = (
        f"POST {target.path}{target.api}{path}{target.query} HTTP/1.1\r\n"
        f"Host: {target.authority}\r\n{key}{more}"
        "Content-Type: application/json\r\nAccept: text/event-stream\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def _sampling(params: SamplingParams, *, standard_fields: bool) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "max_tokens": params.max_tokens,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if params.stop:
        fields["stop"] = list(params.stop)
    if not standard_fields:
        fields |= {"ignore_eos": params.ignore_eos, "return_token_ids": True}
        if params.min_tokens:
            fields["min_tokens"] = params.min_tokens
        if params.stop_token_ids:
            fields["stop_token_ids"] = list(params.stop_token_ids)
    return fields


def _prompt(form: str, token_ids: Int32Array, own: Prompt | None) -> dict[str, Any]:
    if isinstance(own, list):
        return {"messages": own}
    if form == "ids":
        return {"prompt": token_ids.tolist()}
    text = own or words_of(token_ids)
    if form == "text":
        return {"prompt": text}
    return {"messages": [{"role": "user", "content": text}]}


def words_of(token_ids: Int32Array) -> str:
    """A text of about as many tokens."""
    return " ".join(_WORDS[number] for number in np.mod(token_ids, len(_WORDS)).tolist())


def check_header(line: str) -> str:
    """A line ``NAME: VALUE``. Raises ValueError, without saying the value."""
    name, colon, value = line.partition(":")
    if not (colon and value.strip() and name.replace("-", "").isalnum()) or not (
        line.isascii() and line.isprintable()
    ):
        raise ValueError(f"--header {name}: give NAME: VALUE, of printable ASCII characters")
    return f"{name}: {value.strip()}"


def check_key(api_key: str) -> str:
    """It, where a header can hold it. Raises ValueError, without saying it."""
    if not api_key.isascii() or not api_key.isprintable() or " " in api_key:
        raise ValueError("the API key has characters that no header can hold; look for a line end")
    return api_key

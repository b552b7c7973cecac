"""What one event of a stream is and says, read field by field, whichever server sent it.

A field of another kind than is known says nothing; no field is required.
"""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Any, NamedTuple

import msgspec


class Kind(IntEnum):
    """Of an event, by what it has.

    `OPENING` says who speaks; `TOKEN` has token ids, or text of any sort; `BLANK` has a text that
    is empty: a token without text, or none; `CLOSING` a finish reason and no text; `USAGE` numbers
    of tokens alone; `KEEP_ALIVE` is of a known form with nothing in it; `DONE` is the stream's own
    end, as ``[DONE]``; `EMBEDDING` is no stream's; `UNKNOWN` has nothing that is known.
    """

    UNKNOWN = 0
    OPENING = 1
    TOKEN = 2
    BLANK = 3
    CLOSING = 4
    USAGE = 5
    KEEP_ALIVE = 6
    ERROR = 7
    DONE = 8
    EMBEDDING = 9


REASONING = "reasoning"
_CONTENT = (
    (REASONING, ("reasoning_content", "reasoning", "thinking", "reasoning_details")),
    ("text", ("content", "text", "partial_json")),
    ("tool call", ("tool_calls", "function_call")),
    ("refusal", ("refusal",)),
    ("audio", ("audio",)),
)
"""What an answer is made of, and the fields that hold it; of two names for one thing the first."""
_INNER = ("text", "thinking", "content", "transcript", "data", "function", "name", "arguments")
"""Where the parts of a list, or an object in a field's place, hold their text."""
_DEEPEST = 5


class StreamUsage(NamedTuple):
    """Tokens of a request; None where they are not said."""

    prompt_tokens: int | None
    completion_tokens: int | None


class StreamEvent(NamedTuple):
    """``said``: all its text, ``content`` what that is. ``reason``: why the answer ends, "" if not.

    ``opens``: whether it names who speaks, which some servers do in each. ``has_choice``: whether
    it is about an answer at all, not about the request alone.
    """

    kind: Kind
    said: str = ""
    content: str = ""
    token_ids: list[int] = []
    reason: str = ""
    usage: StreamUsage | None = None
    opens: bool = False
    has_choice: bool = False


class _Fields(msgspec.Struct, gc=False):
    choices: Any = msgspec.UNSET
    usage: Any = None
    x_groq: Any = None
    error: Any = None
    object: Any = None
    type: Any = None
    delta: Any = None
    message: Any = None
    data: Any = None


_decode = msgspec.json.Decoder(_Fields).decode


def read_event(data: bytes, name: bytes = b"") -> StreamEvent:
    """An event's data and its type. Raises ValueError for JSON that is broken."""
    if name == b"error":
        return StreamEvent(Kind.ERROR)
    if data.strip().upper() in (b"[DONE]", b"DONE"):
        return StreamEvent(Kind.DONE)
    try:
        return _of_fields(_decode(data))
    except msgspec.ValidationError:
        return StreamEvent(Kind.UNKNOWN)  # a number, a list
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if data.lstrip().startswith(b"{"):
            raise ValueError(str(error)) from None
        return StreamEvent(Kind.UNKNOWN)  # a word


def _of_fields(fields: _Fields) -> StreamEvent:
    if fields.error or "error" in (fields.object, fields.type):
        return StreamEvent(Kind.ERROR)
    if isinstance(fields.choices, list) and fields.choices:
        return _of_choices([each for each in fields.choices if isinstance(each, dict)], fields)
    if isinstance(fields.type, str):
        return _of_type(fields)
    if isinstance(fields.data, list) and _is_embedding(fields.data):
        return StreamEvent(Kind.EMBEDDING, usage=_usage(fields.usage))
    if (usage := _usage(fields.usage, fields.x_groq)) is not None:
        return StreamEvent(Kind.USAGE, usage=usage)
    return StreamEvent(Kind.UNKNOWN if fields.choices is msgspec.UNSET else Kind.KEEP_ALIVE)


def _is_embedding(data: list[Any]) -> bool:
    """Numbers, or their bytes in base64, of each input."""
    found = [each.get("embedding") for each in data if isinstance(each, dict)]
    return bool(found) and all(isinstance(each, (list, str)) and len(each) > 0 for each in found)


def _of_choices(choices: list[dict[str, Any]], fields: _Fields) -> StreamEvent:
    """OpenAI's completions and chats, streamed or whole."""
    said, ids, content, reason = "", list[int](), "", ""
    is_blank = opens = False
    usages = [fields.usage, fields.x_groq]
    for choice in choices:
        usages.append(choice.get("usage"))
        if isinstance(own := choice.get("token_ids"), list):
            ids += [each for each in own if type(each) is int]
        reason = reason or _reason(choice.get("finish_reason"))
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            message = choice.get("message")
            delta = message if isinstance(message, dict) else choice
        text, sort, has_empty = _said(delta)
        said += text
        content = content or sort
        is_blank |= has_empty
        opens |= bool(delta.get("role"))
    usage = _usage(*usages)
    if said or ids:
        kind = Kind.TOKEN
    elif reason:
        kind = Kind.CLOSING
    else:
        kind = _of_nothing(is_blank, usage)
    return StreamEvent(kind, said, content, ids, reason, usage, opens, has_choice=bool(choices))


def _of_type(fields: _Fields) -> StreamEvent:
    """Events that name their type, as Anthropic's."""
    if fields.type == "message_stop":
        return StreamEvent(Kind.DONE)
    message = fields.message if isinstance(fields.message, dict) else {}
    delta = fields.delta if isinstance(fields.delta, dict) else {}
    usage = _usage(fields.usage, message.get("usage"))
    said, content, is_blank = _said(delta)
    reason = _reason(delta.get("stop_reason"))
    if said:
        kind = Kind.TOKEN
    elif reason:
        kind = Kind.CLOSING
    elif delta or fields.type in _KNOWN_TYPES:
        kind = _of_nothing(is_blank, usage)
    else:
        kind = Kind.UNKNOWN
    opens = fields.type in _OPENING_TYPES
    return StreamEvent(kind, said, content, [], reason, usage, opens, has_choice=bool(delta))


_OPENING_TYPES = ("message_start", "content_block_start")
_KNOWN_TYPES = (*_OPENING_TYPES, "ping", "content_block_stop", "message_delta")


def _of_nothing(is_blank: bool, usage: StreamUsage | None) -> Kind:
    """What an event without text and reason is."""
    if is_blank:
        return Kind.BLANK
    return Kind.KEEP_ALIVE if usage is None else Kind.USAGE


def _said(source: Mapping[str, Any]) -> tuple[str, str, bool]:
    """All text of a delta, what the first of it is, and whether an empty text is there."""
    said, content, is_blank = "", "", False
    for sort, names in _CONTENT:
        for name in names:
            value = source.get(name)
            if value is None:
                continue
            if text := _text(value):
                said += text
                content = content or sort
                break
            is_blank |= value == ""
    return said, content, is_blank


def _text(value: Any, deepest: int = _DEEPEST) -> str:
    if isinstance(value, str):
        return value
    if not deepest:
        return ""
    if isinstance(value, list):
        return "".join(_text(each, deepest - 1) for each in value)
    if isinstance(value, dict):
        return "".join(_text(value.get(name), deepest - 1) for name in _INNER)
    return ""


def _reason(value: Any) -> str:
    """Some servers say "" or "null" as long as there is none."""
    return value if isinstance(value, str) and value.lower() not in ("null", "none") else ""


def _usage(*values: Any) -> StreamUsage | None:
    """The first that says a number."""
    for value in values:
        found = value.get("usage", value) if isinstance(value, dict) else None
        if isinstance(found, dict):
            prompt = _number(found, ("prompt_tokens", "input_tokens"))
            completion = _number(found, ("completion_tokens", "output_tokens"))
            if prompt is not None or completion is not None:
                return StreamUsage(prompt, completion)
    return None


def _number(fields: Mapping[str, Any], names: Iterable[str]) -> int | None:
    """A natural number, be it written as 3, 3.0 or "3"."""
    for name in names:
        value = fields.get(name)
        try:
            number = None if isinstance(value, bool) else float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            continue
        if number is not None and 0 <= number < 2**53 and number == int(number):
            return int(number)
    return None

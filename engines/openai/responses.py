"""A whole recording read: what each request was answered, in arrays."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engines.openai.capture import Recording
from engines.openai.outcome import NOT_ATTEMPTED, WHOLE, Outcome
from engines.openai.response import read_response
from engines.protocol import Int32Array, Int64Array

_MOST_MESSAGES = 3
_LENGTHS = ("num_deliveries", "num_ids", "num_text")
_OF_ONE = (
    "outcome",
    "finish_reason",
    "num_tokens",
    "counted_by",
    "usage_tokens",
    "prompt_tokens",
    "first_answer_ns",
)
"""What a `Response` says by these names, too."""
_COLUMNS = (*_OF_ONE, *_LENGTHS)
SMALL = ("outcome", "finish_reason", "counted_by")
"""The columns that are int8."""


class Responses(NamedTuple):
    """Of each request ``[N]``: its `Outcome`, `FinishReason` (-1: not completed), tokens of output
    (`UNKNOWN_COUNT`: nobody says) by which `CountSource`, those that ``usage`` says, those of the
    prompt, how many deliveries brought them, the moment of the first that brought more than
    reasoning (0: none), how many token ids, and how many bytes of text. ``delivered_ns`` ``[D]``,
    ``token_ids`` ``[T]`` and ``text`` ``[B]`` UTF-8 hold these, request after request.
    ``messages``: what the first failures said, by request.
    """

    outcome: NDArray[np.int8]
    finish_reason: NDArray[np.int8]
    num_tokens: Int64Array
    counted_by: NDArray[np.int8]
    usage_tokens: Int64Array
    prompt_tokens: Int64Array
    num_deliveries: Int64Array
    first_answer_ns: Int64Array
    num_ids: Int64Array
    num_text: Int64Array
    delivered_ns: Int64Array
    token_ids: Int32Array
    text: NDArray[np.uint8]
    messages: dict[int, str]

    @property
    def completed(self) -> NDArray[np.bool_]:
        """Which requests were answered to their end: those that have a finish reason."""
        found: NDArray[np.bool_] = np.isin(self.outcome, WHOLE)
        return found

    @property
    def attempted(self) -> NDArray[np.bool_]:
        """Which had their chance of that: sent, and neither interrupted nor of a dead client."""
        found: NDArray[np.bool_] = ~np.isin(self.outcome, NOT_ATTEMPTED)
        return found


def read_responses(recording: Recording) -> Responses:
    """Read each request's pieces."""
    count = len(recording.ended)
    columns: dict[str, Any] = {
        name: np.zeros(count, np.int8 if name in SMALL else np.int64) for name in _COLUMNS
    }
    delivered, ids, texts, messages = [], [], list[bytes](), dict[int, str]()
    for request, pieces in enumerate(pieces_by_request(recording)):
        ended = Outcome(int(recording.ended[request]))
        response = read_response(pieces, ended, int(recording.asked[request]))
        text = response.text.encode(errors="surrogatepass")
        lengths = (len(response.delivered_ns), len(response.token_ids), len(text))
        for name, length in zip(_LENGTHS, lengths, strict=True):
            columns[name][request] = length
        for name in _OF_ONE:
            columns[name][request] = getattr(response, name)
        delivered.append(np.array(response.delivered_ns, np.int64))
        ids.append(np.array(response.token_ids, np.int32))
        texts.append(text)
        if response.message:
            _keep(messages, request, response.message)
    return Responses(
        **columns,
        delivered_ns=np.concatenate([np.zeros(0, np.int64), *delivered]),
        token_ids=np.concatenate([np.zeros(0, np.int32), *ids]),
        text=np.frombuffer(b"".join(texts), np.uint8),
        messages=messages,
    )


def _keep(messages: dict[int, str], request: int, message: str) -> None:
    """A few of each run: a server that fails says the same thousands of times."""
    if message not in messages.values() and len(messages) < 10 * _MOST_MESSAGES:
        messages[request] = message


def pieces_by_request(recording: Recording) -> Iterator[Iterator[tuple[int, bytes]]]:
    """Each request's pieces in the order in which they came."""
    order = np.argsort(recording.request, kind="stable")
    starts = np.searchsorted(recording.request[order], np.arange(len(recording.ended) + 1)).tolist()
    places: list[int] = order.tolist()
    stamps: list[int] = recording.stamp_ns.tolist()
    ends: list[int] = recording.end.tolist()
    data = recording.data.tobytes()

    def pieces(request: int) -> Iterator[tuple[int, bytes]]:
        for place in places[starts[request] : starts[request + 1]]:
            yield stamps[place], data[ends[place - 1] if place else 0 : ends[place]]

    return map(pieces, range(len(recording.ended)))

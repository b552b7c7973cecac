"""All that is known of a run under load, and how processes' parts become one."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engines.openai.capture import Recording
from engines.openai.outcome import Outcome
from engines.openai.responses import SMALL, Responses
from engines.protocol import Int64Array
from harness.load.server_metrics import Scrape
from harness.load.stops import ClientStops
from harness.load.task import Asked, ClientHealth
from workloads.schedule import Schedule

Arrays = dict[str, NDArray[Any]]
"""By name: the fields of a `Recording` and of `Responses`, but messages."""

_OF_PIECES = ("stamp_ns", "request", "end", "data")
_FLAT = {"delivered_ns": "num_deliveries", "token_ids": "num_ids", "text": "num_text"}
"""Arrays that hold something of each request after the other, and how much of each."""


class Observed(NamedTuple):
    """``start_ns``: the moment from which arrival times count. ``deaths``: a sentence for each
    client process that ended too early. ``boot_id``: where these moments mean something.
    """

    schedule: Schedule
    asked: Asked
    start_ns: int
    recording: Recording
    responses: Responses
    clients: list[ClientHealth]
    deaths: list[str]
    scrapes: list[Scrape]
    is_interrupted: bool = False
    stops: Sequence[ClientStops] = ()
    boot_id: str = ""


class ClientPart(NamedTuple):
    """What a process brought home: its requests' numbers in the schedule, its arrays by name (None
    where it has died), and what failures said.
    """

    requests: Int64Array
    arrays: Arrays | None
    messages: dict[int, str]


def merge(schedule: Schedule, parts: Sequence[ClientPart]) -> tuple[Recording, Responses]:
    """The parts as if one process had sent all."""
    count = schedule.num_requests
    alive = [(part.requests, part.arrays) for part in parts if part.arrays is not None]
    recording = _recording(schedule, alive)
    for part in parts:
        if part.arrays is None:
            recording.ended[part.requests] = Outcome.CLIENT_DIED
    columns: dict[str, Any] = {
        name: np.zeros(count, np.int64)
        for name in Responses._fields
        if name not in (*_FLAT, "messages")
    }
    columns["outcome"][:] = recording.ended
    columns["finish_reason"][:] = -1
    for requests, arrays in alive:
        for name, column in columns.items():
            column[requests] = arrays[name]
    flat = {name: _in_order(name, alive) for name in _FLAT}
    messages = {
        int(part.requests[place]): message
        for part in parts
        for place, message in part.messages.items()
    }
    for name in SMALL:
        columns[name] = columns[name].astype(np.int8)
    return recording, Responses(**columns, **flat, messages=dict(sorted(messages.items())))


def _in_order(name: str, alive: Sequence[tuple[Int64Array, Arrays]]) -> NDArray[Any]:
    """A flat array of all parts, request after request."""
    whose = [np.repeat(requests, arrays[_FLAT[name]]) for requests, arrays in alive]
    values = [arrays[name] for _, arrays in alive]
    if not values:
        return np.zeros(0, np.uint8 if name == "text" else np.int64)
    joined: NDArray[Any] = np.concatenate(values)[np.argsort(np.concatenate(whose), kind="stable")]
    return joined


def _recording(schedule: Schedule, alive: Sequence[tuple[Int64Array, Arrays]]) -> Recording:
    """With the pieces of the parts that brought them, process after process."""
    count = schedule.num_requests
    sent, written, ended_at = (np.zeros(count, np.int64) for _ in range(3))
    ended = np.zeros(count, np.int8)
    for requests, arrays in alive:
        sent[requests], written[requests] = arrays["sent_ns"], arrays["written_ns"]
        ended_at[requests], ended[requests] = arrays["ended_ns"], arrays["ended"]
    kept = [(requests, arrays) for requests, arrays in alive if "data" in arrays]
    offsets = np.cumsum([0, *(len(arrays["data"]) for _, arrays in kept)])
    pieces = {
        "stamp_ns": [arrays["stamp_ns"] for _, arrays in kept],
        "request": [requests[arrays["request"]].astype(np.int32) for requests, arrays in kept],
        "end": [arrays["end"] + offset for (_, arrays), offset in zip(kept, offsets, strict=False)],
        "data": [arrays["data"] for _, arrays in kept],
    }
    kinds = dict(zip(_OF_PIECES, (np.int64, np.int32, np.int64, np.uint8), strict=True))
    joined: dict[str, Any] = {
        name: np.concatenate([np.zeros(0, kinds[name]), *each]) for name, each in pieces.items()
    }
    return Recording(sent, written, ended_at, ended, schedule.output_lens, **joined)

"""What crosses between front end and engine core: msgpack, a tagged record a message.

Steps and what comes back of them are those of output processing in a process of its own.
"""

from typing import Any

from engines.builtin.output_processing import messages
from engines.builtin.output_processing.messages import (
    Begin,
    CallAnswer,
    Done,
    Failed,
    Message,
    Refused,
    RemoteCall,
    Remove,
    StepMessage,
)
from engines.protocol import SamplingParams

__all__ = [
    "Abort",
    "Add",
    "Begin",
    "CallAnswer",
    "Done",
    "Failed",
    "Gone",
    "Message",
    "NotAdded",
    "Ready",
    "Refused",
    "RemoteCall",
    "Remove",
    "StepMessage",
    "Stop",
    "to_core",
    "to_front_end",
]


class Add(Message):
    """A request: what `StepEngine.add_request` takes."""

    request_index: int
    prompt_token_ids: Any
    params: SamplingParams
    priority: int


class Abort(Message):
    """The client of a request has left."""

    request_index: int


class Stop(Message):
    """Nothing more will come."""


class Ready(Message):
    """The engine is there."""


class Gone(Message):
    """The engine has forgotten these requests, and their numbers can be given again."""

    request_indices: list[int]


class NotAdded(Message):
    """The engine does not take this request, and why."""

    request_index: int
    sentence: str


to_core = messages.decoder(Add | Abort | RemoteCall | Done | Stop).decode
to_front_end = messages.decoder(
    Ready | Begin | Remove | StepMessage | Gone | NotAdded | CallAnswer | Refused | Failed
).decode

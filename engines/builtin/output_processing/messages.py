"""What crosses between the engine and its output process: msgpack, a tagged record a message."""

import pickle
from typing import Any

import msgspec
import numpy as np

from engines.builtin.delivery.stage import EndedOutput, Processed, StepTokens
from engines.builtin.request_table import Request
from engines.protocol import SamplingParams

_ARRAY = 1


def encode(message: Any) -> bytes:
    """Its bytes, or those of a part of one."""
    return _ENCODER.encode(message)


def decoder(kind: Any) -> "msgspec.msgpack.Decoder[Any]":
    """For a part of this type."""
    return msgspec.msgpack.Decoder(kind, ext_hook=_decode)


class Message(msgspec.Struct, tag=True, array_like=True, gc=False):
    """Arrays keep their dtype and shape; what is not plain data is pickled into bytes."""


class Begin(Message):
    """A request's output begins."""

    slot: int
    request_index: int
    prompt_token_ids: Any
    params: SamplingParams

    @staticmethod
    def of(request: Request) -> "Begin":
        """What the output processor must know of it."""
        return Begin(request.slot, request.request_index, request.prompt_token_ids, request.params)

    def request(self) -> Request:
        """The request, as far as it has crossed."""
        return Request(self.request_index, self.prompt_token_ids, self.params, slot=self.slot)


class Remove(Message):
    """A request was aborted."""

    slot: int


class StepMessage(Message):
    """`StepTokens`."""

    slots: Any
    request_index: Any
    num_tokens: Any
    finished: Any
    reasons: Any
    tokens: msgspec.Raw
    valid: Any
    logprobs: bytes

    @staticmethod
    def of(step: StepTokens) -> "StepMessage":
        """All of it."""
        logprobs = b"" if step.logprobs is None else pickle.dumps(step.logprobs, 5)
        return StepMessage(*step[:5], msgspec.Raw(encode(step.tokens)), step.valid, logprobs)

    def step(self, tokens: Any) -> StepTokens:
        """The same again, with its ``tokens`` decoded."""
        return StepTokens(
            self.slots,
            self.request_index,
            self.num_tokens,
            self.finished,
            self.reasons,
            tokens,
            self.valid,
            pickle.loads(self.logprobs) if self.logprobs else None,
        )


class RemoteCall(Message):
    """A pickled function and its arguments."""

    data: bytes


class Done(Message):
    """`Processed`, without the objects: those stay where clients are served."""

    num_tokens: Any
    finished: Any
    reasons: Any
    ended: bytes
    processing_ns: int
    ready_ns: int

    @staticmethod
    def of(processed: Processed) -> "Done":
        """What the engine must know of it."""
        return Done(
            processed.num_tokens,
            processed.finished,
            processed.reasons,
            pickle.dumps(list(map(tuple, processed.ended)), 5) if processed.ended else b"",
            processed.processing_ns,
            processed.ready_ns,
        )

    def processed(self, step: StepTokens) -> Processed:
        """As it is on the engine's side."""
        ended = [EndedOutput(*each) for each in pickle.loads(self.ended)] if self.ended else ()
        return Processed(
            step,
            self.num_tokens,
            self.finished,
            self.reasons,
            (),
            (),
            ended,
            self.processing_ns,
            self.ready_ns,
        )


class CallAnswer(Message):
    """What a call returned, pickled."""

    data: bytes


class Refused(Message):
    """The sentence of a ValueError."""

    sentence: str


class Failed(Message):
    """The last line of what ended the process."""

    line: str


def _encode(value: Any) -> msgspec.msgpack.Ext:
    if isinstance(value, np.ndarray):
        header = msgspec.msgpack.encode((value.dtype.str, value.shape))
        return msgspec.msgpack.Ext(_ARRAY, bytes([len(header)]) + header + value.tobytes())
    raise TypeError(f"{type(value).__name__} cannot cross to the output process")


def _decode(code: int, data: memoryview) -> Any:
    if code != _ARRAY:
        raise ValueError(f"an extension {code} in a message")
    begin = 1 + data[0]
    dtype, shape = msgspec.msgpack.decode(data[1:begin], type=tuple[str, tuple[int, ...]])
    # A copy: the message's memory goes with it.
    return np.frombuffer(bytearray(data[begin:]), dtype).reshape(shape)


_ENCODER = msgspec.msgpack.Encoder(enc_hook=_encode)
_TO_PROCESS = msgspec.msgpack.Decoder(Begin | Remove | StepMessage | RemoteCall, ext_hook=_decode)
_TO_ENGINE = msgspec.msgpack.Decoder(Done | CallAnswer | Refused | Failed, ext_hook=_decode)

to_process = _TO_PROCESS.decode
to_engine = _TO_ENGINE.decode

"""Only what differs from the step before, in msgpack: both ends keep the last step's arrays.

Each step has a number. A rank that is sent a difference to a step which it has not seen says so,
and is sent that step whole.
"""

import pickle
from typing import Any, TypeVar

import msgspec
import numpy as np

from engines.builtin.wire import Buffer, LostStateError, WireError
from engines.builtin.wire.int_arrays import Packed, pack, unpack
from engines.builtin.wire.sampled import SampledTokens
from engines.builtin.worker import NOBODY, ModelRunnerOutput, NewRequests, SchedulerOutput
from engines.protocol import BoolArray, EngineConfig, Int32Array

VERSION = 1
"""Of the messages below; both ends must speak the same."""

Message = TypeVar("Message")

_ALL_SAMPLE = b""
_EMPTY = np.empty(0, np.int32)


class _Step(msgspec.Struct, array_like=True, gc=False):
    """An array that is None is that of the step before. ``samples``: bits, none where all do."""

    version: int
    number: int
    is_whole: bool
    rows: Packed | None
    num_scheduled: Packed | None
    samples: bytes
    blocks: tuple[Packed, Packed, Packed] | None
    new: tuple[Packed, list[int], list[Packed], Packed, Packed] | None


class _Tokens(msgspec.Struct, array_like=True, gc=False):
    """``arrays``: width (0: of one dimension) and values of each; or the pickle of a plug-in's."""

    arrays: list[tuple[int, Packed]] | bytes
    device_ns: int
    late_ns: int
    device_seconds: float
    logprobs: bytes


class MsgpackDelta:
    """A steady decode step is a handful of bytes, whatever the batch."""

    def __init__(self, config: EngineConfig) -> None:
        self._number = -1
        self._rows, self._num_scheduled = _EMPTY, _EMPTY
        self._sampled = SampledTokens(config)
        self._encoder = msgspec.msgpack.Encoder()
        self._steps = msgspec.msgpack.Decoder(_Step)
        self._tokens = msgspec.msgpack.Decoder(_Tokens)

    def encode_step(self, step: SchedulerOutput) -> list[Buffer]:
        """Its difference to the last one."""
        self._number += 1
        rows = num_scheduled = None
        if not np.array_equal(step.rows, self._rows):
            rows, self._rows = pack(step.rows), step.rows
        if not np.array_equal(step.num_scheduled, self._num_scheduled):
            num_scheduled, self._num_scheduled = pack(step.num_scheduled), step.num_scheduled
        return self._encoded(self._number, False, rows, num_scheduled, step)

    def encode_whole(self, step: SchedulerOutput, steps_since: int) -> list[Buffer]:
        """With its number and all of its arrays."""
        number = self._number - steps_since
        return self._encoded(number, True, pack(step.rows), pack(step.num_scheduled), step)

    def _encoded(
        self,
        number: int,
        is_whole: bool,
        rows: Packed | None,
        counts: Packed | None,
        step: SchedulerOutput,
    ) -> list[Buffer]:
        blocks = new = None
        if len(step.block_ids):
            blocks = pack(step.block_rows), pack(step.block_positions), pack(step.block_ids)
        if step.new.rows:
            new = _packed(step.new)
        samples = _ALL_SAMPLE if step.samples is None else np.packbits(step.samples).tobytes()
        message = _Step(VERSION, number, is_whole, rows, counts, samples, blocks, new)
        return [self._encoder.encode(message)]

    def decode_step(self, data: memoryview) -> SchedulerOutput:
        """The step. Raises LostStateError where the one before it has not been seen."""
        message = _read(self._steps, data, "a step")
        if message.version != VERSION:
            raise WireError(f"messages of version {message.version}, not {VERSION}")
        if not message.is_whole and message.number != self._number + 1:
            raise LostStateError(f"step {message.number} follows step {self._number}")
        self._number = message.number
        if message.rows is not None:
            self._rows = unpack(message.rows)
        if message.num_scheduled is not None:
            self._num_scheduled = unpack(message.num_scheduled)
        blocks = (_EMPTY,) * 3 if message.blocks is None else tuple(map(unpack, message.blocks))
        return SchedulerOutput(
            self._rows,
            self._num_scheduled,
            _bits(message.samples, len(self._rows)),
            NOBODY if message.new is None else _unpacked(*message.new),
            *blocks,
        )

    def encode_tokens(self, output: ModelRunnerOutput) -> list[Buffer]:
        """Whole: of tokens nothing stays."""
        apart = self._sampled.apart(output.sampled)
        arrays: Any = apart
        if not isinstance(apart, bytes):
            arrays = [(each.shape[1] if each.ndim > 1 else 0, pack(each.ravel())) for each in apart]
        logprobs = b"" if output.logprobs is None else pickle.dumps(output.logprobs, 5)
        message = _Tokens(arrays, output.device_ns, output.late_ns, output.device_seconds, logprobs)
        return [self._encoder.encode(message)]

    def decode_tokens(self, data: memoryview) -> ModelRunnerOutput:
        """In their representation."""
        message = _read(self._tokens, data, "tokens")
        arrays: Any = message.arrays
        if not isinstance(arrays, bytes):
            arrays = [_shaped(unpack(packed), width) for width, packed in arrays]
        return ModelRunnerOutput(
            self._sampled.together(arrays),
            message.device_ns,
            message.late_ns,
            message.device_seconds,
            pickle.loads(message.logprobs) if message.logprobs else None,
        )


def _read(decoder: "msgspec.msgpack.Decoder[Message]", data: memoryview, what: str) -> Message:
    try:
        return decoder.decode(data)
    except msgspec.MsgspecError as error:
        raise WireError(f"{what} that cannot be read: {error}") from None


def _shaped(values: Int32Array, width: int) -> Int32Array:
    return values.reshape(-1, width) if width else values


def _bits(samples: bytes, count: int) -> BoolArray | None:
    if samples == _ALL_SAMPLE:
        return None
    bits = np.unpackbits(np.frombuffer(samples, np.uint8), count=count)
    return bits.astype(np.bool_)


def _packed(new: NewRequests) -> tuple[Packed, list[int], list[Packed], Packed, Packed]:
    """Numbers of requests are no int32."""
    rows, computed, output = (
        pack(np.array(each, np.int32)) for each in (new.rows, new.num_computed, new.num_output)
    )
    return rows, list(new.request_index), [pack(each) for each in new.token_ids], computed, output


def _unpacked(
    rows: Packed, index: list[int], token_ids: list[Packed], computed: Packed, output: Packed
) -> NewRequests:
    return NewRequests(
        unpack(rows).tolist(),
        index,
        [unpack(each) for each in token_ids],
        unpack(computed).tolist(),
        unpack(output).tolist(),
    )

"""Arrays as narrow as they go in msgpack, version and number in each step; every step is whole."""

import pickle
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec
import numpy as np

from engines.builtin.wire import Buffer, Stateless, WireError
from engines.builtin.wire.int_arrays import Packed, pack, unpack
from engines.builtin.wire.sampled import SampledTokens
from engines.builtin.wire.unpickle import unpickle
from engines.builtin.worker import NOBODY, ModelRunnerOutput, NewRequests, SchedulerOutput
from engines.pickle_fields import PICKLE_REST
from engines.protocol import BoolArray, EngineConfig, Int32Array, Sampling

VERSION = 1
"""Of the messages below; both ends must speak the same."""

Decoded = TypeVar("Decoded")

_ALL_SAMPLE = b""
_EMPTY = np.empty(0, np.int32)


class WireStep(msgspec.Struct, array_like=True, gc=False):
    """An array that is None is that of the step before, and the step not whole.

    ``samples``: bits, none where all do.
    """

    version: int
    number: int
    is_whole: bool
    rows: Packed | None
    num_scheduled: Packed | None
    samples: bytes
    blocks: tuple[Packed, Packed, Packed] | None
    new: tuple[Packed, list[int], list[Packed], Packed, Packed] | None


class StepWithSampling(WireStep):
    """A step some of whose new requests have a sampling of their own."""

    sampling: list[Sampling | None] = []


class _Tokens(msgspec.Struct, array_like=True, gc=False):
    """``arrays``: width (0: of one dimension) and values of each; or the pickle of a plug-in's."""

    arrays: list[tuple[int, Packed]] | bytes
    device_ns: int
    late_ns: int
    device_seconds: float
    logprobs: bytes


class Msgpack(Stateless):
    """No pickle, no names."""

    def __init__(self, config: EngineConfig) -> None:
        self.number = -1
        """Of the last step that was encoded, or decoded, here."""
        self._sampled = SampledTokens(config)
        self._encoder = msgspec.msgpack.Encoder()
        self._steps = msgspec.msgpack.Decoder(StepWithSampling)
        self._tokens = msgspec.msgpack.Decoder(_Tokens)

    def encode_step(self, step: SchedulerOutput) -> list[Buffer]:
        """All of its arrays."""
        self.number += 1
        return self.encoded(step, self.number, pack(step.rows), pack(step.num_scheduled))

    def encoded(
        self,
        step: SchedulerOutput,
        number: int,
        rows: Packed | None,
        num_scheduled: Packed | None,
        is_whole: bool = True,
    ) -> list[Buffer]:
        """A step of which rows and tokens are packed already, None where they are as before."""
        blocks = new = None
        if len(step.block_ids):
            blocks = pack(step.block_rows), pack(step.block_positions), pack(step.block_ids)
        if step.new.rows:
            new = _packed(step.new)
        samples = _ALL_SAMPLE if step.samples is None else np.packbits(step.samples).tobytes()
        fields = (VERSION, number, is_whole, rows, num_scheduled, samples, blocks, new)
        if step.new.sampling:
            message: WireStep = StepWithSampling(*fields, list(step.new.sampling))
        else:
            message = WireStep(*fields)
        return [self._encoder.encode(message)]

    def decode_step(self, data: memoryview) -> SchedulerOutput:
        """Memory of its own."""
        message = self.read_step(data)
        if message.rows is None or message.num_scheduled is None:
            raise WireError(f"step {message.number} without all of its arrays")
        return unpacked_step(message, unpack(message.rows), unpack(message.num_scheduled))

    def read_step(self, data: memoryview) -> StepWithSampling:
        """As it was sent. Raises WireError for another version."""
        message = _read(self._steps, data, "a step")
        if message.version != VERSION:
            raise WireError(f"messages of version {message.version}, not {VERSION}")
        return message

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
            unpickle(message.logprobs) if message.logprobs else None,
        )

    def step_fields(self, message: bytes) -> dict[str, int]:
        """Of each field of the message, those of new requests apart."""
        found = _sizes(StepWithSampling.__struct_fields__, message)
        if found["new"] > 1:  # more than a nil
            place = WireStep.__struct_fields__.index("new")
            new = msgspec.msgpack.decode(message, type=list[msgspec.Raw])[place]
            within = _sizes(NewRequests._fields, new)
            del found["new"]
            found[PICKLE_REST] += within.pop(PICKLE_REST)
            found |= {f"new.{name}": num_bytes for name, num_bytes in within.items()}
        return found

    def tokens_fields(self, message: bytes) -> dict[str, int]:
        """Of each field of the message."""
        found = _sizes(_Tokens.__struct_fields__, message)
        found["sampled"] = found.pop("arrays")
        return found


def _sizes(names: Sequence[str], array: Buffer | msgspec.Raw) -> dict[str, int]:
    """Bytes of an array's elements by their names; what holds them together is the rest."""
    each = [len(bytes(part)) for part in msgspec.msgpack.decode(array, type=list[msgspec.Raw])]
    # What comes last may not be there.
    return {
        PICKLE_REST: memoryview(array).nbytes - sum(each),
        **dict(zip(names, each, strict=False)),
    }


def unpacked_step(
    message: StepWithSampling, rows: Int32Array, num_scheduled: Int32Array
) -> SchedulerOutput:
    """The step with these."""
    blocks = (_EMPTY,) * 3 if message.blocks is None else tuple(map(unpack, message.blocks))
    return SchedulerOutput(
        rows,
        num_scheduled,
        _bits(message.samples, len(rows)),
        NOBODY if message.new is None else _unpacked(*message.new, message.sampling),
        *blocks,
    )


def _read(decoder: "msgspec.msgpack.Decoder[Decoded]", data: memoryview, what: str) -> Decoded:
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
    rows: Packed,
    index: list[int],
    token_ids: list[Packed],
    computed: Packed,
    output: Packed,
    sampling: list[Sampling | None],
) -> NewRequests:
    return NewRequests(
        unpack(rows).tolist(),
        index,
        [unpack(each) for each in token_ids],
        unpack(computed).tolist(),
        unpack(output).tolist(),
        sampling or (),
    )

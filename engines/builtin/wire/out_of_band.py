"""Pickle, protocol 5, arrays out of band: they are sent from where they lie (PEP 574)."""

import pickle
import struct
from typing import Any

from engines.builtin.wire import Buffer, Stateless, WireError
from engines.builtin.wire.unpickle import unpickle
from engines.builtin.worker import ModelRunnerOutput, SchedulerOutput
from engines.pickle_fields import PICKLE_REST, pickle_fields
from engines.protocol import EngineConfig

_LENGTH_BYTES = 4


class OutOfBand(Stateless):
    """The pickle's length, the number of buffers and theirs; then the pickle, then the buffers."""

    def __init__(self, config: EngineConfig) -> None:
        pass

    def encode_step(self, step: SchedulerOutput) -> list[Buffer]:
        """The arrays uncopied."""
        return _encode(step)

    def decode_step(self, data: memoryview) -> SchedulerOutput:
        """Arrays over the message's own memory, which cannot be written to."""
        step: SchedulerOutput = _decode(data)
        return step

    def encode_tokens(self, output: ModelRunnerOutput) -> list[Buffer]:
        """The arrays uncopied."""
        return _encode(output)

    def decode_tokens(self, data: memoryview) -> ModelRunnerOutput:
        """Arrays over the message's own memory, which cannot be written to."""
        output: ModelRunnerOutput = _decode(data)
        return output

    def step_fields(self, message: bytes) -> dict[str, int]:
        """Of pickle and buffers; the lengths are the rest."""
        pickled, buffers = _split(memoryview(message))
        found = pickle_fields(bytes(pickled), list(map(len, buffers)))
        found[PICKLE_REST] += len(message) - sum(found.values())
        return found

    tokens_fields = step_fields


def _encode(message: Any) -> list[Buffer]:
    out_of_band: list[pickle.PickleBuffer] = []
    pickled = pickle.dumps(message, 5, buffer_callback=out_of_band.append)
    buffers = [each.raw() for each in out_of_band]
    lengths = (len(pickled), len(buffers), *(each.nbytes for each in buffers))
    return [struct.pack(f"<{len(lengths)}I", *lengths), pickled, *buffers]


def _decode(data: memoryview) -> Any:
    pickled, buffers = _split(data)
    return unpickle(pickled, buffers)


def _split(data: memoryview) -> tuple[memoryview, list[memoryview]]:
    """The pickle, and the buffers beside it."""
    try:
        length, count = struct.unpack_from("<2I", data)
        lengths = struct.unpack_from(f"<{count}I", data, 2 * _LENGTH_BYTES)
        begin = (2 + count) * _LENGTH_BYTES
        if begin + length + sum(lengths) != len(data):
            raise WireError("a message whose parts do not add up to its length")
    except struct.error as error:
        raise WireError(f"a message that was cut short ({error})") from None
    pickled = data[begin : begin + length]
    begin += length
    buffers = []
    for each in lengths:
        buffers.append(data[begin : begin + each])
        begin += each
    return pickled, buffers

"""Rows by number: every array as it lies in memory, behind a header that says how many there are.

No pickle, no names, no state. The columns of new requests are arrays too, their prompts one.
"""

import pickle
import struct
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from engines.builtin.wire import Buffer, Stateless, WireError
from engines.builtin.wire.sampled import SampledTokens
from engines.builtin.wire.unpickle import unpickle
from engines.builtin.worker import NOBODY, ModelRunnerOutput, NewRequests, SchedulerOutput
from engines.pickle_fields import PICKLE_REST
from engines.protocol import EngineConfig, Sampling

AnyArray = np.ndarray[Any, np.dtype[Any]]

_STEP = struct.Struct("<4IB")
"""Requests, new requests, their tokens, new blocks; 1 where some do not sample, 2 where new ones
have a sampling of their own.
"""
_TOKENS = struct.Struct("<qqdII")
"""Nanoseconds on the device, of these too many, its seconds; arrays, bytes of log-probabilities."""
_SHAPE = struct.Struct("<II")
"""Rows and width of an array, 0 for one of one dimension."""
_I32, _I64, _F64, _BOOL = (np.dtype(each) for each in ("<i4", "<i8", "<f8", "?"))
_NO_OWN = Sampling()
_OWN_WIDTH = 1 + len(_NO_OWN)
"""Whether it has one, and what it is: seeds have 32 bits, so a float64 holds them."""


class Columns(Stateless):
    """A copy of the arrays' memory and little else."""

    def __init__(self, config: EngineConfig) -> None:
        self._sampled = SampledTokens(config)

    def encode_step(self, step: SchedulerOutput) -> list[Buffer]:
        """The arrays uncopied."""
        new = step.new
        header = _STEP.pack(
            len(step.rows),
            len(new.rows),
            sum(map(len, new.token_ids)),
            len(step.block_ids),
            (step.samples is not None) + 2 * bool(new.sampling),
        )
        arrays: list[AnyArray] = [step.rows, step.num_scheduled]
        arrays += [step.block_rows, step.block_positions, step.block_ids]
        if new.rows:
            lengths = list(map(len, new.token_ids))
            columns = (new.rows, new.num_computed, new.num_output, lengths)
            arrays += [np.array(each, _I32) for each in columns]
            arrays += [np.array(new.request_index, _I64), *new.token_ids]
        if step.samples is not None:
            arrays.append(step.samples)
        if new.sampling:
            own = [[False, *_NO_OWN] if each is None else [True, *each] for each in new.sampling]
            arrays.append(np.array(own, _F64))
        return [header, *map(_bytes, arrays)]

    def decode_step(self, data: memoryview) -> SchedulerOutput:
        """Arrays over the message's own memory."""
        take = _Reader(data)
        num_reqs, num_new, num_tokens, num_blocks, some = take.header(_STEP)
        rows, num_scheduled = (take.array(_I32, num_reqs) for _ in range(2))
        blocks = [take.array(_I32, num_blocks) for _ in range(3)]
        news = NOBODY
        if num_new:
            new_rows, computed, output, lengths = (take.array(_I32, num_new) for _ in range(4))
            index = take.array(_I64, num_new)
            tokens = take.array(_I32, num_tokens)
            ends = pairwise(accumulate(lengths.tolist(), initial=0))
            prompts = [tokens[start:end] for start, end in ends]
            news = NewRequests(
                new_rows.tolist(), index.tolist(), prompts, computed.tolist(), output.tolist()
            )
        samples = take.array(_BOOL, num_reqs) if some & 1 else None
        if some & 2:
            own = take.array(_F64, num_new * _OWN_WIDTH).reshape(num_new, _OWN_WIDTH).tolist()
            sampling = [
                Sampling(t, int(k), p, int(seed)) if is_own else None
                for is_own, t, k, p, seed in own
            ]
            news = news._replace(sampling=sampling)
        take.ends()
        return SchedulerOutput(rows, num_scheduled, samples, news, *blocks)

    def encode_tokens(self, output: ModelRunnerOutput) -> list[Buffer]:
        """The arrays uncopied."""
        apart = self._sampled.apart(output.sampled)
        logprobs = b"" if output.logprobs is None else pickle.dumps(output.logprobs, 5)
        arrays: Sequence[AnyArray] = (
            [np.frombuffer(apart, np.uint8)] if isinstance(apart, bytes) else apart
        )
        header = _TOKENS.pack(
            output.device_ns, output.late_ns, output.device_seconds, len(arrays), len(logprobs)
        )
        shapes = [_SHAPE.pack(len(each), each.shape[1] if each.ndim > 1 else 0) for each in arrays]
        return [header, *shapes, *map(_bytes, arrays), logprobs]

    def decode_tokens(self, data: memoryview) -> ModelRunnerOutput:
        """In their representation, over the message's own memory."""
        take = _Reader(data)
        device_ns, late_ns, device_seconds, count, num_logprobs = take.header(_TOKENS)
        shapes = [take.header(_SHAPE) for _ in range(count)]
        parts: Any
        if self._sampled.is_pickled:
            parts = take.bytes_(shapes[0][0])
        else:
            parts = [
                take.array(_I32, rows * width).reshape(rows, width)
                if width
                else take.array(_I32, rows)
                for rows, width in shapes
            ]
        logprobs = take.bytes_(num_logprobs)
        take.ends()
        return ModelRunnerOutput(
            self._sampled.together(parts),
            device_ns,
            late_ns,
            device_seconds,
            unpickle(logprobs) if num_logprobs else None,
        )

    def step_fields(self, message: bytes) -> dict[str, int]:
        """Of each array; the header is the rest."""
        num_reqs, num_new, num_tokens, num_blocks, some = _STEP.unpack_from(message)
        new = {
            "new": num_new * (4 * _I32.itemsize + _I64.itemsize),
            "new.token_ids": num_tokens * _I32.itemsize,
        }
        rows = dict.fromkeys(("rows", "num_scheduled"), num_reqs * _I32.itemsize)
        blocks = dict.fromkeys(
            ("block_rows", "block_positions", "block_ids"), num_blocks * _I32.itemsize
        )
        if some & 2:
            new["new.sampling"] = num_new * _OWN_WIDTH * _F64.itemsize
        return {PICKLE_REST: _STEP.size, "samples": num_reqs * (some & 1), **rows, **blocks, **new}

    def tokens_fields(self, message: bytes) -> dict[str, int]:
        """Of tokens and log-probabilities; header and shapes are the rest."""
        *_, count, num_logprobs = _TOKENS.unpack_from(message)
        rest = _TOKENS.size + count * _SHAPE.size
        sampled = len(message) - rest - num_logprobs
        return {PICKLE_REST: rest, "sampled": sampled, "logprobs": num_logprobs}


class _Reader:
    """A message from its beginning on. Raises WireError where it is shorter than it says."""

    def __init__(self, data: memoryview) -> None:
        self._data, self._place = data, 0

    def header(self, fields: struct.Struct) -> tuple[Any, ...]:
        """The next fields."""
        return fields.unpack(self.bytes_(fields.size))

    def array(self, dtype: np.dtype[Any], count: int) -> Any:
        """The next ``count`` elements."""
        return np.frombuffer(self.bytes_(count * dtype.itemsize), dtype)

    def bytes_(self, count: int) -> memoryview:
        """The next ``count`` bytes."""
        part = self._data[self._place : self._place + count]
        if len(part) < count:
            raise WireError(f"a message of {len(self._data)} bytes that was cut short")
        self._place += count
        return part

    def ends(self) -> None:
        """Nothing is left."""
        if self._place != len(self._data):
            raise WireError(f"a message with {len(self._data) - self._place} bytes too many")


def _bytes(array: AnyArray) -> memoryview:
    return np.ascontiguousarray(array).data.cast("B") if array.size else memoryview(b"")

"""Only what differs from the step before: both ends keep the last step's arrays.

A rank that is sent a difference to a step which it has not seen says so, and is sent that step
whole.
"""

import numpy as np

from engines.builtin.wire import Buffer, LostStateError
from engines.builtin.wire.int_arrays import pack, unpack
from engines.builtin.wire.msgpack import Msgpack, unpacked_step
from engines.builtin.worker import SchedulerOutput
from engines.protocol import EngineConfig

_EMPTY = np.empty(0, np.int32)


class MsgpackDelta:
    """A steady decode step is a handful of bytes, whatever the batch."""

    def __init__(self, config: EngineConfig) -> None:
        self._whole = Msgpack(config)
        self._rows, self._num_scheduled = _EMPTY, _EMPTY
        self.encode_tokens = self._whole.encode_tokens
        self.decode_tokens = self._whole.decode_tokens
        self.tokens_stay = self._whole.tokens_stay
        self.step_fields = self._whole.step_fields
        self.tokens_fields = self._whole.tokens_fields

    def encode_step(self, step: SchedulerOutput) -> list[Buffer]:
        """Its difference to the last one."""
        whole = self._whole
        whole.number += 1
        rows = num_scheduled = None
        if not np.array_equal(step.rows, self._rows):
            rows, self._rows = pack(step.rows), step.rows
        if not np.array_equal(step.num_scheduled, self._num_scheduled):
            num_scheduled, self._num_scheduled = pack(step.num_scheduled), step.num_scheduled
        return whole.encoded(step, whole.number, rows, num_scheduled, is_whole=False)

    def encode_whole(self, step: SchedulerOutput, steps_since: int) -> list[Buffer]:
        """With its number and all of its arrays."""
        number = self._whole.number - steps_since
        return self._whole.encoded(step, number, pack(step.rows), pack(step.num_scheduled))

    def decode_step(self, data: memoryview) -> SchedulerOutput:
        """The step. Raises LostStateError where the one before it has not been seen."""
        whole = self._whole
        message = whole.read_step(data)
        if not message.is_whole and message.number != whole.number + 1:
            raise LostStateError(f"step {message.number} follows step {whole.number}")
        whole.number = message.number
        if message.rows is not None:
            self._rows = unpack(message.rows)
        if message.num_scheduled is not None:
            self._num_scheduled = unpack(message.num_scheduled)
        return unpacked_step(message, self._rows, self._num_scheduled)

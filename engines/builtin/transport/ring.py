"""A ring of slots in memory that several processes share: one writes, each of the others reads all.

The memory has no name: it is there as long as one of the processes has it, and nothing is left of
processes that are killed.
"""

import mmap
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from engines.builtin.transport import Incoming
from engines.builtin.wire import Buffer
from engines.builtin.worker.channel import ByteChannel
from engines.builtin.worker.messages import BELL

_NUM_SLOTS = 8
_SLOT_BYTES = 1 << 20
"""A message that is longer goes by the channels, and its slot says so."""
_COUNTER_STRIDE = 8
"""In counters of 8 bytes: each has a cache line of its own."""
_BY_CHANNEL = 1 << 63
_WAIT_FOR_ROOM_SECONDS = 0.001
_LENGTH_BYTES = 8

# Taking a lock keeps what is before it before what is behind it on every processor: a reader that
# says that it parks, and then looks once more, must not look before it has said so.
_FENCE = threading.Lock()


def open_memory(num_readers: int) -> int:
    """The descriptor of a new ring's memory, all of it there.

    Raises ValueError where there is no room for it.
    """
    descriptor = os.memfd_create("gcbench-ring")
    try:
        os.posix_fallocate(descriptor, 0, _num_bytes(num_readers))
    except OSError as error:
        os.close(descriptor)
        raise ValueError(
            f"--wire …shared-memory: no room for {_num_bytes(num_readers) >> 20} MiB of memory "
            f"that processes share ({error.strerror}); make some, or use another wire"
        ) from None
    return descriptor


class _Ring:
    """``counters[0]``: messages written; then of each reader those read, and whether it parks."""

    def __init__(self, descriptor: int, num_readers: int) -> None:
        self._memory = mmap.mmap(descriptor, _num_bytes(num_readers))
        self._views = ExitStack()
        begin = _begin_of_slots(num_readers)
        whole = self._view(memoryview(self._memory))
        self._counters = self._view(self._view(whole[:begin]).cast("Q"))
        self._slots = [
            self._view(whole[start : start + _LENGTH_BYTES + _SLOT_BYTES])
            for start in range(begin, len(whole), _LENGTH_BYTES + _SLOT_BYTES)
        ]
        self._read_at = [(1 + 2 * n) * _COUNTER_STRIDE for n in range(num_readers)]
        self._parked_at = [(2 + 2 * n) * _COUNTER_STRIDE for n in range(num_readers)]

    def _view(self, view: memoryview) -> memoryview:
        return self._views.enter_context(view)

    def close(self) -> None:
        """Let the memory go; safe to call twice."""
        self._views.close()
        self._memory.close()


class RingWriter(_Ring):
    """``channels``: of its readers, to tell those that have parked."""

    def __init__(self, descriptor: int, num_readers: int, channels: Sequence[ByteChannel]) -> None:
        super().__init__(descriptor, num_readers)
        self._channels = channels
        self._written = 0
        self.num_bytes = 0

    def send(self, listen: Callable[[float], None], *buffers: Buffer) -> None:
        """Write a message once, whoever reads it.

        ``listen(seconds)`` hears the channels while a reader has to make room.
        """
        while self._written - min(self._counters[at] for at in self._read_at) >= _NUM_SLOTS:
            listen(_WAIT_FOR_ROOM_SECONDS)
        slot = self._slots[self._written % _NUM_SLOTS]
        length = sum(map(len, buffers))
        by_channel = length > _SLOT_BYTES
        slot[:_LENGTH_BYTES] = (length | _BY_CHANNEL * by_channel).to_bytes(_LENGTH_BYTES, "little")
        self.num_bytes += _LENGTH_BYTES
        if not by_channel:
            self.num_bytes += length
            place = _LENGTH_BYTES
            for buffer in buffers:
                slot[place : place + len(buffer)] = buffer
                place += len(buffer)
        self._written += 1
        self._counters[0] = self._written
        with _FENCE:
            pass
        for channel, parked in zip(self._channels, self._parked_at, strict=True):
            if self._counters[parked]:
                self._counters[parked] = 0
                channel.send(BELL)
        if by_channel:
            for channel in self._channels:
                channel.send(*buffers)


class RingReader(_Ring, Incoming):
    """The ``index``-th of the readers. ``spin_seconds``: how long it looks before it parks."""

    def __init__(
        self,
        descriptor: int,
        num_readers: int,
        index: int,
        channel: ByteChannel,
        spin_seconds: float,
    ) -> None:
        super().__init__(descriptor, num_readers)
        self._read_at_own, self._parked_at_own = self._read_at[index], self._parked_at[index]
        self._channel = channel
        self._spin_ns = round(spin_seconds * 1e9)
        self._read = 0
        self.num_bytes = 0
        self.spun_ns = 0

    def take(self) -> bytes | None:
        """The next message, copied: its slot is another's at once."""
        if self._counters[0] == self._read:
            return None
        slot = self._slots[self._read % _NUM_SLOTS]
        length = int.from_bytes(slot[:_LENGTH_BYTES], "little")
        if length & _BY_CHANNEL:
            while (message := self._channel.recv()) == BELL:
                pass
        else:
            message = bytes(slot[_LENGTH_BYTES : _LENGTH_BYTES + length])
        self.num_bytes += _LENGTH_BYTES + (0 if length & _BY_CHANNEL else length)
        self._read += 1
        self._counters[self._read_at_own] = self._read
        return message

    def spin(self, is_enough: Callable[[], bool]) -> bool:
        """Give the core away at each look, so that another thread of this process gets the GIL."""
        if self._spin_ns <= 0:
            return False
        until = time.perf_counter_ns() + self._spin_ns
        began = time.thread_time_ns()
        while not (found := self._counters[0] != self._read) and not is_enough():
            if time.perf_counter_ns() > until:
                break
            os.sched_yield()
        self.spun_ns += time.thread_time_ns() - began
        return found

    def park(self) -> bool:
        """Say so in the memory, and look once more."""
        self._counters[self._parked_at_own] = 1
        with _FENCE:
            pass
        return self._counters[0] == self._read


def _begin_of_slots(num_readers: int) -> int:
    return (1 + 2 * num_readers) * _COUNTER_STRIDE * 8


def _num_bytes(num_readers: int) -> int:
    return _begin_of_slots(num_readers) + _NUM_SLOTS * (_LENGTH_BYTES + _SLOT_BYTES)

"""What the tests call in an engine's processes: pickled by name, so in a module of its own."""

import gc
import os
import signal
import threading
from collections import deque
from types import BuiltinFunctionType, FunctionType, ModuleType

from engines.builtin.wire import LostStateError

_NOT_ITS_OWN = (type, ModuleType, FunctionType, BuiltinFunctionType)


def describe(process):
    return process.role, os.getpid()


def count_busy(process):
    """Count calls of the hook in its process, next to it."""
    process.num_busy = 0

    def count():
        process.num_busy += 1

    process.while_device_busy = count


def read_busy(process):
    return process.num_busy


def die_when_busy(process):
    if process.role == "worker":
        process.while_device_busy = lambda: signal.raise_signal(signal.SIGKILL)


class AwaitsTheNext:
    """A step that ends once another has been launched behind it, or after a hang."""

    def __init__(self, handle, has_next: threading.Event, seen: list) -> None:
        self._handle, self._has_next, self._seen = handle, has_next, seen

    def __getattr__(self, name):
        return getattr(self._handle, name)

    def wait(self):
        self._seen.append(self._has_next.wait(timeout=600 if all(self._seen) else 0))
        return self._handle.wait()


class AwaitingDevice:
    """A device whose steps end with the launch of the next; the last of ``num_steps`` by itself."""

    def __init__(self, device, num_steps: int) -> None:
        self._device, self._num_steps = device, num_steps
        self._events: list[threading.Event] = []
        self.seen: list[bool] = []

    def launch(self, batch):
        if self._events:
            self._events[-1].set()
        self._events.append(threading.Event())
        if len(self._events) == self._num_steps:
            self._events[-1].set()
        return AwaitsTheNext(self._device.launch(batch), self._events[-1], self.seen)


class LateStep:
    """A step that this rank waits for until the one after the next has come."""

    def __init__(self, device: "LateDevice", handle, nth: int) -> None:
        self._device, self._handle, self._nth = device, handle, nth

    def __getattr__(self, name):
        return getattr(self._handle, name)

    def wait(self):
        self._device.come(self._nth + 2).wait(timeout=600)
        self._device.num_waited += 1
        return self._handle.wait()


class LateDevice:
    """A device behind whose steps its rank is as late as it can be; ``most`` under way so far."""

    def __init__(self, device, wire) -> None:
        self._device, self._wire = device, wire
        self._events: dict[int, threading.Event] = {}
        self._lock = threading.Lock()
        self._num_come = self.num_launched = self.num_waited = self.most = 0

    def come(self, nth: int) -> threading.Event:
        with self._lock:
            return self._events.setdefault(nth, threading.Event())

    def __getattr__(self, name):
        return getattr(self._wire, name)

    def decode_step(self, data):
        self.come(self._num_come).set()
        self._num_come += 1
        return self._wire.decode_step(data)

    def launch(self, batch):
        self.num_launched += 1
        self.most = max(self.most, self.num_launched - self.num_waited)
        return LateStep(self, self._device.launch(batch), self.num_launched - 1)


def fall_behind(process):
    """Every rank but the one that answers."""
    if process.role == "worker" and not process.answers:
        process.wire = process.runner.device = LateDevice(process.runner.device, process.wire)


def most_under_way(process):
    return getattr(getattr(process, "wire", None), "most", None)


def end_steps_with_the_next(process, num_steps: int):
    if process.role == "worker":
        process.runner.device = AwaitingDevice(process.runner.device, num_steps)


def seen_next(process):
    return process.runner.device.seen if process.role == "worker" else None


def die(process, role: str) -> None:
    if process.role == role:
        signal.raise_signal(signal.SIGKILL)


def fail(process, role):
    if process.role == role:
        raise LookupError("no such weight")


def refuse(process, role: str, sentence: str) -> None:
    if process.role == role:
        raise ValueError(sentence)


def num_held(process) -> int:
    """Entries of all containers that are reachable from a process of the engine."""
    seen, left, count = set(), [process], 0
    while left:
        thing = left.pop()
        if id(thing) in seen or isinstance(thing, _NOT_ITS_OWN):
            continue
        seen.add(id(thing))
        if isinstance(thing, dict | list | set | frozenset | tuple | deque):
            count += len(thing)
        left += gc.get_referents(thing)
    return count


class Forgetful:
    """A worker's end of a wire that loses its state before every seventh step."""

    def __init__(self, wire, config) -> None:
        self._wire, self._config, self._count = wire, config, 0
        self.num_lost = 0
        self.encode_tokens = wire.encode_tokens

    def decode_step(self, data):
        self._count += 1
        if self._count % 7 == 0:
            self._wire = type(self._wire)(self._config)
        try:
            return self._wire.decode_step(data)
        except LostStateError:
            self.num_lost += 1
            raise


def forget_now_and_then(process):
    if process.role == "worker":
        process.wire = Forgetful(process.wire, process.config)


def num_lost(process):
    return process.wire.num_lost if process.role == "worker" else None


class Cutting:
    """A worker's end of a wire that loses the last byte of its tokens."""

    def __init__(self, wire) -> None:
        self.decode_step, self._wire = wire.decode_step, wire

    def encode_tokens(self, output):
        return [b"".join(self._wire.encode_tokens(output))[:-1]]


def cut_tokens(process):
    if process.role == "worker":
        process.wire = Cutting(process.wire)


def collections(process) -> list[int]:
    return [each["collections"] for each in gc.get_stats()]

"""Counts bytecodes by `sys.settrace`, which gives all of them up to Python 3.11 and not later."""

import gc
import sys
from opcode import opmap
from types import FrameType
from typing import Any

_YIELD_VALUE = bytes([opmap["YIELD_VALUE"]])
_SUSPENDABLE = 0x20 | 0x80 | 0x200
"""co_flags of generators, coroutines and asynchronous generators."""


class OpcodeCounter:
    """A trace function over everything Python that this thread runs while it is installed.

    It reads the collector's young count after each bytecode, so it sees what a bytecode leaves
    allocated, and not what lives and dies inside one C call. The frame objects that tracing
    itself makes are left out.
    """

    def __init__(self) -> None:
        self.num_opcodes = 0
        self.num_allocations = 0
        self.peak = 0
        """Most objects alive over those at the start; wrong where the young count reached 0."""
        # Bound once: made anew at each event they would be counted.
        self.trace, self._in_trace = self._enter_frame, self._in_frame
        self._num_frames = 0
        self._suspended: set[int] = set()
        self._offset = 0
        self._raised = False
        self._start = 0
        self._last = 0

    def __enter__(self) -> "OpcodeCounter":
        self._num_frames = 0
        self._suspended.clear()
        gc.get_count()  # leaves its tuple to the free list, where the next one finds it
        self._start = self._last = gc.get_count()[0]
        sys.settrace(self.trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _enter_frame(self, frame: FrameType, event: str, arg: Any) -> Any:
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        if id(frame) in self._suspended:
            self._suspended.remove(id(frame))
        else:
            self._num_frames += 1
        self._look()
        return self._in_trace

    def _in_frame(self, frame: FrameType, event: str, arg: Any) -> Any:
        self._look()
        if event == "opcode":
            self.num_opcodes += 1
            self._offset = frame.f_lasti
        elif event == "return":
            if not self._raised and _yields(frame, self._offset):
                self._suspended.add(id(frame))
            else:
                self._num_frames -= 1
        self._raised = event == "exception"
        return self._in_trace

    @property
    def is_disturbed(self) -> bool:
        """Whether the block set another trace function, so that bytecodes were missed."""
        return sys.gettrace() != self.trace

    def _look(self) -> None:
        alive = gc.get_count()[0] - self._num_frames
        if alive > self._last:
            self.num_allocations += alive - self._last
            self.peak = max(self.peak, alive - self._start)
        self._last = alive


def _yields(frame: FrameType, offset: int) -> bool:
    code = frame.f_code
    if not code.co_flags & _SUSPENDABLE:
        return False
    return code.co_code[offset : offset + 1] == _YIELD_VALUE


def tracers() -> list[object]:
    """What traces this thread already and would have to be displaced."""
    return [each for each in (sys.gettrace(),) if each is not None]

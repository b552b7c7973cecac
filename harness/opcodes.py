"""Counts bytecodes, and tracked allocations between them, in the steps of an engine."""

import gc
import sys
from types import FrameType
from typing import Any


class OpcodeCounter:
    """A trace function over everything Python that runs while it is installed.

    It reads the collector's young count after each bytecode, so it sees what a bytecode leaves
    allocated, and not what lives and dies inside one C call. The frame object that tracing
    itself makes for each call is left out.
    """

    def __init__(self) -> None:
        self.num_opcodes = 0
        self.num_allocations = 0
        self._last = 0

    def __enter__(self) -> "OpcodeCounter":
        self._last = gc.get_count()[0]
        sys.settrace(self._enter_frame)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _enter_frame(self, frame: FrameType, event: str, arg: Any) -> Any:
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        self._last = gc.get_count()[0]
        return self._in_frame

    def _in_frame(self, frame: FrameType, event: str, arg: Any) -> Any:
        now = gc.get_count()[0]
        if now > self._last:
            self.num_allocations += now - self._last
        self._last = now
        if event == "opcode":
            self.num_opcodes += 1
        return self._in_frame

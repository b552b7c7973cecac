"""Counts bytecodes by `sys.monitoring`, for Python 3.12 and later."""

import gc
import sys
from opcode import opmap
from threading import get_ident
from types import CodeType

assert sys.version_info >= (3, 12)

_INSTRUCTION = sys.monitoring.events.INSTRUCTION
_EXTENDED_ARG = opmap["EXTENDED_ARG"]
_NUM_TOOLS = 6
_TOOL_ID = 4
"""One of the two that Python reserves for no kind of tool."""


class OpcodeCounter:
    """Watches everything Python that this thread runs in a ``with`` block over it.

    It reads the collector's young count before each bytecode, so it sees what a bytecode leaves
    allocated, and not what lives and dies inside one C call. It makes no tracked object itself.
    The function that has the ``with`` block is left out: only what it calls is counted.
    """

    def __init__(self) -> None:
        self.num_opcodes = 0
        self.num_allocations = 0
        self.peak = 0
        """Most objects alive over those before a call; wrong where the young count reached 0."""
        self.is_disturbed = False
        """Whether the block set a trace or profile function, whose frame objects count too."""
        self._thread = 0
        self._caller: CodeType | None = None
        self._left_out: set[int] = set()
        self._start = 0
        self._last = 0

    def __enter__(self) -> "OpcodeCounter":
        self._thread = get_ident()
        self._caller = sys._getframe(1).f_code
        self._left_out = {id(self._caller), *_OWN}
        sys.monitoring.use_tool_id(_TOOL_ID, "gcbench")
        sys.monitoring.register_callback(_TOOL_ID, _INSTRUCTION, self._before_instruction)
        gc.get_count()  # leaves its tuple to the free list, where the next one finds it
        # For all code: switched on function by function, one that the block deletes would have to
        # be kept alive until it could be switched off again.
        sys.monitoring.set_events(_TOOL_ID, _INSTRUCTION)
        return self

    def __exit__(self, *_: object) -> None:
        sys.monitoring.set_events(_TOOL_ID, 0)
        sys.monitoring.register_callback(_TOOL_ID, _INSTRUCTION, None)
        sys.monitoring.free_tool_id(_TOOL_ID)

    def _before_instruction(self, code: CodeType, offset: int) -> None:
        if get_ident() != self._thread:
            return
        alive = gc.get_count()[0]
        if id(code) in self._left_out:
            if code is self._caller:
                self._start = self._last = alive
            return
        if code.co_code[offset] != _EXTENDED_ARG:
            self.num_opcodes += 1
        if alive > self._last:
            self.num_allocations += alive - self._last
            # Not by max(), which makes a tuple of its arguments in 3.12.
            if alive - self._start > self.peak:  # noqa: PLR1730
                self.peak = alive - self._start
            if sys.gettrace() is not None or sys.getprofile() is not None:
                self.is_disturbed = True
        self._last = alive


_OWN = frozenset(id(f.__code__) for f in (OpcodeCounter.__enter__, OpcodeCounter.__exit__))


def tracers() -> list[object]:
    """What traces this thread already, so that counts would be wrong, or `sys.monitoring` it."""
    tools = [sys.monitoring.get_tool(tool_id) for tool_id in range(_NUM_TOOLS)]
    return [each for each in (sys.gettrace(), sys.getprofile(), *tools) if each is not None]

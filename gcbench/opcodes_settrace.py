"""Counts bytecodes by `sys.settrace`, which gives all of them up to Python 3.11 and not later."""

import sys
from contextlib import nullcontext
from gc import get_count
from opcode import opmap
from types import FrameType
from typing import TYPE_CHECKING, Any

from gcbench.call_tree import CallNode, CallTree

if TYPE_CHECKING:
    from array import array

_YIELD_VALUE = opmap["YIELD_VALUE"]
_SUSPENDABLE = 0x20 | 0x80 | 0x200
"""co_flags of generators, coroutines and asynchronous generators."""


class _TracedNode(CallNode):
    """One whose frames say what they do."""

    __slots__ = ("counter", "trace")

    def __init__(self, counter: "OpcodeCounter") -> None:
        super().__init__()
        self.counter = counter
        self.trace = self._in_frame  # bound once: made anew for each frame it would be counted

    def _in_frame(self, frame: FrameType, event: str, arg: Any) -> None:
        offset = frame.f_lasti
        counter = self.counter
        if event == "opcode":
            if self.flags[offset]:
                counter.raised = False
                alive = get_count()[0]
                if alive != counter.alive:
                    counter.changed(alive)
            self.bytecodes[offset] += 1
            counter.offset = offset
            return
        counter.changed(get_count()[0])
        if event == "return":
            counter.leave(frame, self, offset)
        counter.raised = event == "exception"


class OpcodeCounter:
    """A trace function over everything Python that this thread runs in ``with`` blocks over it.

    It reads the collector's young count after each bytecode that may change it, so it sees what a
    bytecode leaves allocated, and not what lives and dies inside one C call. The frame objects
    that tracing itself makes are left out, and so is what leaves the block. ``log``, an array of
    type "i", gets each change of the count in its turn.
    """

    @staticmethod
    def instrumented() -> nullcontext[None]:
        """Nothing: no code is changed to be traced."""
        return nullcontext()

    def __init__(self, log: "array[int] | None" = None) -> None:
        self._log = log
        self.tree = CallTree(lambda: _TracedNode(self))
        self.peak = 0
        """Most objects alive over those at the start; wrong where the young count reached 0."""
        self.is_disturbed = False
        """Whether a block set another trace function, so that bytecodes were missed."""
        # Bound once, as the nodes' functions.
        self._trace = self._enter_frame
        self._suspended: set[int] = set()
        self._offsets: list[int] = []
        self._node = self.tree.root
        self._start = 0
        # What the nodes write at each bytecode.
        self.raised = False
        self.alive = 0
        self.offset = 0

    @property
    def num_opcodes(self) -> int:
        """Bytecodes executed; to be read outside the blocks."""
        return self.tree.total("bytecodes")

    @property
    def num_allocations(self) -> int:
        """The sum of the young count's rises; to be read outside the blocks."""
        return self.tree.total("allocations")

    def __enter__(self) -> "OpcodeCounter":
        self._node, self.offset = self.tree.root, 0
        self._suspended.clear()
        self._offsets.clear()
        self.raised = False
        get_count()  # leaves its tuple to the free list, where the next one finds it
        self._start = self.alive = get_count()[0]
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_: object) -> None:
        self.is_disturbed |= sys.gettrace() != self._trace
        sys.settrace(None)
        self.tree.refill()

    def _enter_frame(self, frame: FrameType, event: str, arg: Any) -> Any:
        if frame.f_code is _EXIT:
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        if id(frame) in self._suspended:
            self._suspended.remove(id(frame))
        else:
            # The object of this frame is tracing's own.
            self.alive += 1
            self._start += 1
        self.changed(get_count()[0])
        self._offsets.append(self.offset)
        node = self._node = self.tree.child(self._node, frame.f_code)
        node.num_calls += 1
        self.offset = 0
        self.alive = get_count()[0]  # what a new node is made of is not counted
        return node.trace  # type: ignore[attr-defined]  # the tree is made of these

    def leave(self, frame: FrameType, node: _TracedNode, offset: int) -> None:
        """A frame of ``node`` returns, yields or raises."""
        code = frame.f_code
        yields = code.co_flags & _SUSPENDABLE and code.co_code[offset] == _YIELD_VALUE
        if yields and not self.raised:
            self._suspended.add(id(frame))
        else:
            self.alive -= 1
            self._start -= 1
        assert node.parent is not None
        self._node = node.parent
        self.offset = self._offsets.pop()

    def changed(self, alive: int) -> None:
        """So many objects are alive after the last bytecode."""
        delta = alive - self.alive
        if delta:
            if self._log is not None:
                self._log.append(delta)
            node, offset = self._node, self.offset
            node.net[offset] += delta
            if delta > 0:
                node.allocations[offset] += delta
                # Not by max(), which takes a tuple of its arguments from a free list.
                if alive - self._start > self.peak:  # noqa: PLR1730
                    self.peak = alive - self._start
            self.alive = alive


_EXIT = OpcodeCounter.__exit__.__code__


def tracers() -> list[object]:
    """What traces this thread already and would have to be displaced."""
    return [each for each in (sys.gettrace(),) if each is not None]

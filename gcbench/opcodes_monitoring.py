"""Counts bytecodes by `sys.monitoring`, for Python 3.12 and later."""

import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from gc import get_count
from threading import get_ident
from types import CodeType
from typing import TYPE_CHECKING

from gcbench.call_tree import PREFIX, CallNode, CallTree

if TYPE_CHECKING:
    from array import array

assert sys.version_info >= (3, 12)

_EVENTS = sys.monitoring.events
_NUM_TOOLS = 6
_TOOL_ID = 4
"""One of the two that Python reserves for no kind of tool."""
_HAS_JIT = sys.version_info >= (3, 14) and sys._jit.is_available()
_stays_on = [False]
_ALL = (
    _EVENTS.INSTRUCTION
    | _EVENTS.PY_START
    | _EVENTS.PY_RESUME
    | _EVENTS.PY_THROW
    | _EVENTS.PY_RETURN
    | _EVENTS.PY_YIELD
    | _EVENTS.PY_UNWIND
)


class OpcodeCounter:
    """Watches everything Python that this thread runs in ``with`` blocks over it.

    It reads the collector's young count before each bytecode that follows one that may change it,
    so it sees what a bytecode leaves allocated, and not what lives and dies inside one C call. It
    makes no tracked object itself but what it keeps. The function that has the ``with`` block is
    left out: only what it calls is counted. ``log``, an array of type "i", gets each change of the
    count in its turn.
    """

    @staticmethod
    def instrumented() -> AbstractContextManager[None]:
        """All code that runs here stays instrumented, so that blocks count its allocations exactly.

        A CPython that has a JIT, be it off, makes a list with each function that it instruments,
        and leaves it to the free list: a list made next would not count. So what is to be counted
        runs here once before. Costs time, and other builds do not need it.
        """
        return _instrumented()

    def __init__(self, log: "array[int] | None" = None) -> None:
        self._log = log
        self.tree = CallTree(CallNode)
        self.peak = 0
        """Most objects alive over those before a call; wrong where the young count reached 0."""
        self.is_disturbed = False
        """Whether a block set a trace or profile function, whose frame objects count too."""
        self._callbacks: dict[int, Callable[..., object]] = {
            _EVENTS.INSTRUCTION: self._before_instruction,
            _EVENTS.PY_START: self._enter,
            _EVENTS.PY_RESUME: self._enter,
            _EVENTS.PY_THROW: self._throw,
            _EVENTS.PY_RETURN: self._leave,
            _EVENTS.PY_YIELD: self._leave,
            _EVENTS.PY_UNWIND: self._leave,
        }
        self._thread = 0
        self._caller: CodeType | None = None
        self._node = self.tree.root
        self._offsets: list[int] = []
        self._offset = 0
        self._start = 0
        self._alive = 0

    @property
    def num_opcodes(self) -> int:
        """Bytecodes executed; to be read outside the blocks."""
        return self.tree.total("bytecodes")

    @property
    def num_allocations(self) -> int:
        """The sum of the young count's rises; to be read outside the blocks."""
        return self.tree.total("allocations")

    def __enter__(self) -> "OpcodeCounter":
        self._thread = get_ident()
        self._caller = sys._getframe(1).f_code
        self._node, self._offset = self.tree.root, 0
        self._offsets.clear()
        if not _stays_on[0]:
            sys.monitoring.use_tool_id(_TOOL_ID, "gcbench")
        for event in self._callbacks:  # items() would leave a tuple to the free list
            sys.monitoring.register_callback(_TOOL_ID, event, self._callbacks[event])
        get_count()  # leaves its tuple to the free list, where the next one finds it
        self._start = self._alive = get_count()[0]
        # For all code: switched on function by function, one that the block deletes would have to
        # be kept alive until it could be switched off again.
        sys.monitoring.set_events(_TOOL_ID, _ALL)
        return self

    def __exit__(self, *_: object) -> None:
        if not _stays_on[0]:
            sys.monitoring.set_events(_TOOL_ID, 0)
        for event in self._callbacks:
            sys.monitoring.register_callback(_TOOL_ID, event, None)
        if not _stays_on[0]:
            sys.monitoring.free_tool_id(_TOOL_ID)
        self.tree.refill()

    def _before_instruction(self, code: CodeType, offset: int) -> None:
        if get_ident() != self._thread:
            return
        node = self._node
        if code is not node.code:
            if code is self._caller:
                self._start = self._alive = get_count()[0]
            return
        if flags := node.flags[offset]:
            alive = get_count()[0]
            if alive != self._alive:
                self._changed(alive)
            if flags & PREFIX:
                return
        node.bytecodes[offset] += 1
        self._offset = offset

    def _enter(self, code: CodeType, offset: int) -> None:
        if get_ident() != self._thread or code is _EXIT:
            return
        self._changed(get_count()[0])
        self._offsets.append(self._offset)
        node = self._node = self.tree.child(self._node, code)
        node.num_calls += 1
        self._offset = 0
        self._alive = get_count()[0]  # what a new node is made of is not counted

    def _throw(self, code: CodeType, offset: int, exception: object) -> None:
        self._enter(code, offset)

    def _leave(self, code: CodeType, offset: int, value: object) -> None:
        node = self._node
        if get_ident() != self._thread or code is not node.code:
            return
        assert node.parent is not None
        self._changed(get_count()[0])
        self._node = node.parent
        self._offset = self._offsets.pop()

    def _changed(self, alive: int) -> None:
        """So many objects are alive after the last bytecode."""
        delta = alive - self._alive
        if delta:
            if self._log is not None:
                self._log.append(delta)
            node, offset = self._node, self._offset
            node.net[offset] += delta
            if delta > 0:
                node.allocations[offset] += delta
                # Not by max(), which takes a tuple of its arguments from a free list in 3.12.
                if alive - self._start > self.peak:  # noqa: PLR1730
                    self.peak = alive - self._start
                if sys.gettrace() is not None or sys.getprofile() is not None:
                    self.is_disturbed = True
            self._alive = alive


_EXIT = OpcodeCounter.__exit__.__code__


@contextmanager
def _instrumented() -> Iterator[None]:
    if not _HAS_JIT or _stays_on[0]:
        yield
        return
    sys.monitoring.use_tool_id(_TOOL_ID, "gcbench")
    sys.monitoring.set_events(_TOOL_ID, _ALL)
    _stays_on[0] = True
    try:
        with suppress(KeyError), OpcodeCounter():
            _rehearse()
        yield
    finally:
        _stays_on[0] = False
        sys.monitoring.set_events(_TOOL_ID, 0)
        sys.monitoring.free_tool_id(_TOOL_ID)


def _rehearse() -> None:
    """Makes each callback run."""

    def suspended() -> Generator[set[int], None, None]:
        yield {1}

    generator = suspended()
    next(generator)
    generator.throw(KeyError)


def tracers() -> list[object]:
    """What traces this thread already, so that counts would be wrong, or `sys.monitoring` it."""
    tools = [sys.monitoring.get_tool(tool_id) for tool_id in range(_NUM_TOOLS)]
    return [each for each in (sys.gettrace(), sys.getprofile(), *tools) if each is not None]

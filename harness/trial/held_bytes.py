"""The bytes that this process holds, look by look, by the line of code that took them."""

import ctypes
import gc
import sys
import tracemalloc
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from harness.collector.allocation_trace import Frames, allocation_trace
from harness.trial.allocated_blocks import empty_caches

CodeLine = tuple[str, int]
"""File and line; "" and 0: taken before the tracing began, or by no line."""

_OWN = (__file__, tracemalloc.__file__)
_NOWHERE: CodeLine = ("", 0)

_trace_at = ctypes.pythonapi._PyTraceMalloc_GetTraceback
_trace_at.restype = ctypes.py_object
_trace_at.argtypes = (ctypes.c_uint, ctypes.c_size_t)


class _Kind(NamedTuple):
    """Containers that take more than they use, as CPython 3.11 to 3.14 lay them out.

    ``block``: where in the object the address of its (for a deque, its newest) block stands.
    ``each``: bytes that an entry uses of it: its references.
    """

    type: type[Any]
    block: int
    each: int

    def length(self, each: Any) -> int:
        """Whatever a class derived from it says."""
        length: int = self.type.__len__(each)
        return length

    def taken(self, each: Any) -> int:
        """Bytes of its blocks."""
        of: Any = self.type
        size: int = of.__sizeof__(each) - of.__basicsize__
        return size

    def frames(self, each: Any) -> Frames | None:
        """Those that have taken its block; None where that was not traced."""
        frames: Frames | None = _trace_at(0, _address(each, self.block))
        return frames


_KINDS = (
    _Kind(list, 24, 8),
    _Kind(dict, 32, 16),
    _Kind(set, 40, 8),
    _Kind(deque, 32, 8),
    _Kind(bytearray, 32, 1),
)
_DICT_VALUES = 40
"""Where a dict has the address of its values, if it shares its keys: those of an instance."""


class HeldGrowth(NamedTuple):
    """``bytes``: from each look to the next. ``what``: "list" or the like, "" for new objects."""

    line: CodeLine
    what: str
    bytes: list[int]


class HeldBytes:
    """Looks at what `tracemalloc`, which must trace, sees taken, and at torch's tensors if any.

    Of a container that grows, what it uses is counted, not what it has taken ahead. What a library
    takes stands at the line of ``package`` that called it, where that is among the frames traced.
    What C code takes by `malloc` is not seen, nor are tensors that only C code refers to.
    """

    def __init__(self, package: str, num_looks: int) -> None:
        self._inside = f"/{package}/"
        self._looks: list[Counter[CodeLine | int]] = [Counter() for _ in range(num_looks)]
        self._next = 0
        self._growing: list[tuple[_Kind, Any]] = []
        self._tensors: list[Any] = []

    def find_growing(self, serve: Callable[[], object]) -> None:
        """Which containers have another length once ``serve`` has served: each is looked at.

        All there is by then is frozen, so that a look costs no more than what is new.
        """
        before = {id(each): kind.length(each) for kind, each in _containers()}
        serve()
        self._growing = [
            (kind, each)
            for kind, each in _containers()
            if before.get(id(each)) not in (None, kind.length(each))
            and not (kind.type is dict and _address(each, _DICT_VALUES))
        ]
        del before
        self._tensors = _tensors()
        gc.freeze()

    def look(self) -> None:
        """Once no garbage is left."""
        gc.collect()
        empty_caches()
        held = self._looks[self._next]
        self._next += 1
        for found in tracemalloc.take_snapshot().statistics("traceback"):
            frames = [(frame.filename, frame.lineno) for frame in reversed(found.traceback)]
            if frames[0][0] not in _OWN:
                held[self._line(frames)] += found.size
        for number, (kind, each) in enumerate(self._growing):
            held[number] = kind.each * kind.length(each)
            if of_block := kind.frames(each):
                held[self._line(of_block)] -= kind.taken(each)
        storages = {each.untyped_storage().data_ptr(): each for each in self._tensors + _tensors()}
        for each in storages.values():
            held[self._line(allocation_trace(each))] += each.untyped_storage().nbytes()

    def growth(self) -> list[HeldGrowth]:
        """Of all that was held at any look."""
        return [
            HeldGrowth(
                *self._named(source), [b[source] - a[source] for a, b in pairwise(self._looks)]
            )
            for source in set().union(*self._looks)
        ]

    def _named(self, source: CodeLine | int) -> tuple[CodeLine, str]:
        if not isinstance(source, int):
            return source, ""
        kind, each = self._growing[source]
        return self._line(kind.frames(each)), type(each).__name__

    def _line(self, frames: Sequence[CodeLine] | None) -> CodeLine:
        """The innermost of the package, or of all."""
        if not frames:
            return _NOWHERE
        return next((frame for frame in frames if self._inside in frame[0]), frames[0])


def _containers() -> Iterator[tuple[_Kind, Any]]:
    """All that the collector tracks, and untracked ones that such objects refer to."""
    layer = gc.get_objects()
    seen: set[int] = set()
    while layer:
        kinds = {of: kind for of in set(map(type, layer)) if (kind := _kind_of(of))}
        for each in layer:
            if kind := kinds.get(type(each)):
                yield kind, each
        # Few types of very many references: the rest is not worth a look at each.
        referred = gc.get_referents(*layer)
        types = {of for of in set(map(type, referred)) if issubclass(of, (bytearray, dict))}
        found = {id(e): e for e in referred if type(e) in types and not gc.is_tracked(e)}
        layer = [each for key, each in found.items() if key not in seen]
        seen |= found.keys()


def _kind_of(of: type) -> _Kind | None:
    return next((kind for kind in _KINDS if issubclass(of, kind.type)), None)


def _tensors() -> list[Any]:
    """Those that the collector tracks, where there is torch, frozen ones aside."""
    torch: Any = sys.modules.get("torch")
    if torch is None:
        return []
    objects = gc.get_objects()
    types = {of for of in set(map(type, objects)) if issubclass(of, torch.Tensor)}
    found = [each for each in objects if type(each) in types]
    return [e for e in found if e.layout is torch.strided and e.device.type != "meta"]


def _address(of: object, offset: int) -> int:
    return ctypes.c_size_t.from_address(id(of) + offset).value

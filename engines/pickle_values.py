"""What a pickle is made of: its values, each with the bytes that are its own."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pickletools import OpcodeInfo, genops
from typing import Any

_TAKES = {
    "TUPLE1": 1,
    "TUPLE2": 2,
    "TUPLE3": 3,
    "APPEND": 1,
    "SETITEM": 2,
    "STACK_GLOBAL": 2,
    "REDUCE": 2,
    "NEWOBJ": 2,
    "NEWOBJ_EX": 3,
    "BUILD": 1,
    "POP": 1,
}
_TAKES_TO_MARK = {"TUPLE", "FROZENSET", "APPENDS", "SETITEMS", "ADDITEMS", "POP_MARK"}


class PickledValue:
    """A value on the unpickler's stack, and the values that it is made of.

    ``kind``: the opcode that made it; ``num_bytes`` without those of its parts. ``items``: of a
    dictionary keys and values in turn; of an object its arguments as one value, then what was
    added to it. ``made_by``: an object's class or function; ``states``: what it was built with.
    ``text``: of a string; ``name``: module and name of a class or function. A value that stood
    somewhere before has text or name, and no items.
    """

    __slots__ = ("items", "kind", "made_by", "name", "num_bytes", "states", "text")

    def __init__(self, kind: str, num_bytes: int, items: "Sequence[PickledValue]" = ()) -> None:
        self.kind, self.num_bytes, self.items = kind, num_bytes, list(items)
        self.made_by: PickledValue | None = None
        self.states: list[PickledValue] = []
        self.text = ""
        self.name: tuple[str, str] | None = None

    def parts(self) -> "Iterator[PickledValue]":
        """The values that it is made of."""
        yield from self.items
        yield from self.states
        if self.made_by is not None:
            yield self.made_by


def read_pickle(data: bytes, buffer_bytes: Iterable[int] = ()) -> tuple[PickledValue, int]:
    """The value that a pickle makes, and the bytes that belong to none: frames, memo, its end.

    Together they are all bytes, and those of each buffer out of band, which are ``buffer_bytes``.
    Raises ValueError for an opcode that protocols 2 to 5 do not write.
    """
    stack = _Stack(iter(buffer_bytes))
    for opcode, argument, length in _with_lengths(data):
        stack.step(opcode, argument, length)
    return stack.values[0], stack.num_rest


def _with_lengths(data: bytes) -> Iterator[tuple[OpcodeInfo, Any, int]]:
    """Each opcode, its argument, and the bytes of both."""
    ops = genops(data)
    opcode, argument, begin = next(ops)
    for following, its_argument, position in ops:
        yield opcode, argument, (position or 0) - (begin or 0)
        opcode, argument, begin = following, its_argument, position
    yield opcode, argument, 1  # STOP


class _Stack:
    """The unpickler's, with what each opcode does to it."""

    def __init__(self, buffers: Iterator[int]) -> None:
        self.values: list[PickledValue] = []
        self.num_rest = 0
        self._below: list[list[PickledValue]] = []
        self._memo: dict[int, PickledValue] = {}
        self._buffers = buffers

    def step(self, opcode: OpcodeInfo, argument: Any, length: int) -> None:
        """Do what an opcode does."""
        name, taken = opcode.name, []
        if name in _TAKES:
            taken = self.values[-_TAKES[name] :]
            del self.values[-_TAKES[name] :]
        elif name in _TAKES_TO_MARK:
            taken, self.values = self.values, self._below.pop()
            length += 1  # the mark's
        if (act := _ACTS.get(name)) is not None:
            act(self, name, argument, length, taken)
        elif not opcode.stack_before and len(opcode.stack_after) == 1:
            self.values.append(PickledValue(name, length))
            if isinstance(argument, str):
                self.values[-1].text = argument
        else:
            raise ValueError(f"a pickle with {name}, which protocols 2 to 5 do not write")

    def envelope(self, name: str, argument: Any, length: int, taken: list[PickledValue]) -> None:
        self.num_rest += length

    def drop(self, name: str, argument: Any, length: int, taken: list[PickledValue]) -> None:
        self.num_rest += length
        while taken:
            each = taken.pop()
            self.num_rest += each.num_bytes
            taken += each.parts()

    def memoize(self, name: str, argument: Any, length: int, taken: list[PickledValue]) -> None:
        self._memo[len(self._memo) if argument is None else argument] = self.values[-1]
        self.num_rest += length

    def again(self, name: str, argument: Any, length: int, taken: list[PickledValue]) -> None:
        there = self._memo[argument]
        self.values.append(PickledValue(name, length))
        self.values[-1].text, self.values[-1].name = there.text, there.name

    def mark(self, name: str, argument: Any, length: int, taken: list[PickledValue]) -> None:
        self._below.append(self.values)
        self.values = []

    def collect(self, name: str, argument: Any, length: int, taken: list[PickledValue]) -> None:
        self.values.append(PickledValue(name, length, taken))

    def add(self, name: str, argument: Any, length: int, taken: list[PickledValue]) -> None:
        self.values[-1].items += taken
        self.values[-1].num_bytes += length

    def make(self, name: str, argument: Any, length: int, taken: list[PickledValue]) -> None:
        self.values.append(PickledValue(name, length, taken[1:]))
        self.values[-1].made_by = taken[0]

    def build(self, name: str, argument: Any, length: int, taken: list[PickledValue]) -> None:
        self.values[-1].states += taken
        self.values[-1].num_bytes += length

    def global_(self, name: str, argument: Any, length: int, taken: list[PickledValue]) -> None:
        module, attribute = argument.split(" ", 1) if argument else (each.text for each in taken)
        self.values.append(PickledValue(name, length, taken))
        self.values[-1].name = module, attribute

    def buffer(self, name: str, argument: Any, length: int, taken: list[PickledValue]) -> None:
        self.values.append(PickledValue(name, length + next(self._buffers)))


_Act = Callable[[_Stack, str, Any, int, list[PickledValue]], None]
_ACTS: dict[str, _Act] = {
    **dict.fromkeys(("PROTO", "FRAME", "STOP"), _Stack.envelope),
    **dict.fromkeys(("POP", "POP_MARK"), _Stack.drop),
    **dict.fromkeys(("MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT"), _Stack.memoize),
    **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), _Stack.again),
    **dict.fromkeys(("TUPLE1", "TUPLE2", "TUPLE3", "TUPLE", "FROZENSET"), _Stack.collect),
    **dict.fromkeys(
        ("APPEND", "APPENDS", "SETITEM", "SETITEMS", "ADDITEMS", "READONLY_BUFFER"), _Stack.add
    ),
    **dict.fromkeys(("REDUCE", "NEWOBJ", "NEWOBJ_EX"), _Stack.make),
    **dict.fromkeys(("GLOBAL", "STACK_GLOBAL"), _Stack.global_),
    "BUILD": _Stack.build,
    "MARK": _Stack.mark,
    "NEXT_BUFFER": _Stack.buffer,
}

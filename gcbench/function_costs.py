"""What each function has cost: its own bytecodes and allocations, and those of all that it called.

Sums over the functions are the counter's totals, to the digit.
"""

import dis
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from types import CodeType
from typing import NamedTuple
from zlib import crc32

from gcbench.call_tree import CallNode, CallTree
from gcbench.relative_file import relative_file

_file = cache(relative_file)

REST = "rest"
"""The stage of what no stage has called."""


class LineCost(NamedTuple):
    """A line's own. ``net``: how the number of tracked objects has changed, frees included."""

    line: int
    bytecodes: int
    allocations: int
    net: int


class FunctionCost(NamedTuple):
    """A function in a stage of the step. ``all_bytecodes`` and ``all_allocations`` are its own and
    those of what it called, once where it calls itself.

    ``file`` is relative to the folder it was imported from, ``line`` the function's first.
    ``code`` is a byte, as two hexadecimal digits, for each instruction and the name it is about:
    functions that do alike have alike ones.
    """

    stage: str
    file: str
    name: str
    line: int
    calls: int
    bytecodes: int
    allocations: int
    net: int
    all_bytecodes: int
    all_allocations: int
    lines: list[LineCost]
    code: str


class Call(NamedTuple):
    """A function as called by those above it: a node of the tree of calls, its own costs.

    ``parent`` is the place of its caller's call in the list, -1 for what nobody has called;
    ``function`` the place of its function in the list of functions.
    """

    parent: int
    function: int
    calls: int
    bytecodes: int
    allocations: int
    net: int


class CountedCalls(NamedTuple):
    """All functions that ran, the dearest first, and their calls, callers before the called."""

    functions: list[FunctionCost]
    calls: list[Call]


class _Key(NamedTuple):
    stage: str
    file: str
    name: str
    line: int


class _Sum:
    """What is added up of a function."""

    def __init__(self, code: CodeType) -> None:
        self.code = code
        self.calls = self.all_bytecodes = self.all_allocations = 0
        self.lines: dict[int, list[int]] = {}


def counted_calls(tree: CallTree, stages: Mapping[str, str]) -> CountedCalls:
    """What a tree of calls has counted; ``stages``: functions, by qualified name, that begin one.

    A stage is a function's and that of all it calls, up to the next that begins one.
    """
    sums: dict[_Key, _Sum] = {}
    calls: list[tuple[int, _Key, CallNode]] = []
    _add(tree, stages, sums, calls)
    functions = sorted(
        (_function(key, each) for key, each in sums.items()),
        key=lambda each: (-each.bytecodes, each.stage, each.file, each.line, each.name),
    )
    places = {_Key(*each[:4]): place for place, each in enumerate(functions)}
    return CountedCalls(
        functions,
        [
            Call(
                parent,
                places[key],
                node.num_calls,
                sum(node.bytecodes),
                sum(node.allocations),
                sum(node.net),
            )
            for parent, key, node in calls
        ],
    )


def bytecodes_by_function(tree: CallTree) -> Counter[tuple[str, str, int]]:
    """Each function's own, by file, name and first line, as `FunctionCost` has them."""
    found: Counter[tuple[str, str, int]] = Counter()
    for node in tree.nodes():
        code = node.code
        if code is not None:
            found[_place(code)] += sum(node.bytecodes)
    return found


def _add(
    tree: CallTree,
    stages: Mapping[str, str],
    sums: dict[_Key, _Sum],
    calls: list[tuple[int, _Key, CallNode]],
) -> None:
    place_of: dict[int, int] = {}
    stage_of = {id(tree.root): REST}
    for node in tree.nodes():
        code, parent = node.code, node.parent
        if code is None or parent is None:
            continue
        stage = stage_of[id(node)] = stages.get(code.co_qualname, stage_of[id(parent)])
        key = _Key(stage, *_place(code))
        place_of[id(node)] = len(calls)
        calls.append((place_of.get(id(parent), -1), key, node))
        total = sums.setdefault(key, _Sum(code))
        total.calls += node.num_calls
        for place, line in _lines(code):
            counts = node.bytecodes[place], node.allocations[place], node.net[place]
            if any(counts):
                own = total.lines.setdefault(line, [0, 0, 0])
                for i, count in enumerate(counts):
                    own[i] += count
    _add_inclusive(sums, calls)


def _add_inclusive(sums: dict[_Key, _Sum], calls: list[tuple[int, _Key, CallNode]]) -> None:
    below = [(sum(node.bytecodes), sum(node.allocations)) for _, _, node in calls]
    for place in reversed(range(len(calls))):
        if (parent := calls[place][0]) >= 0:
            below[parent] = (below[parent][0] + below[place][0], below[parent][1] + below[place][1])
    above: list[frozenset[_Key]] = []
    for place, (parent, key, _) in enumerate(calls):
        callers = above[parent] if parent >= 0 else frozenset[_Key]()
        above.append(callers | {key})
        if key not in callers:
            sums[key].all_bytecodes += below[place][0]
            sums[key].all_allocations += below[place][1]


def _function(key: _Key, total: _Sum) -> FunctionCost:
    lines = [LineCost(line, *counts) for line, counts in sorted(total.lines.items())]
    return FunctionCost(
        *key,
        total.calls,
        sum(each.bytecodes for each in lines),
        sum(each.allocations for each in lines),
        sum(each.net for each in lines),
        total.all_bytecodes,
        total.all_allocations,
        lines,
        signature(total.code),
    )


def _place(code: CodeType) -> tuple[str, str, int]:
    """File, name and first line."""
    return _file(code.co_filename), _name(code), code.co_firstlineno


def _name(code: CodeType) -> str:
    """Its qualified name; of one that was made from a string, with its arguments: all data classes'
    are called alike.
    """
    if not code.co_filename.startswith("<"):
        return code.co_qualname
    return f"{code.co_qualname}({', '.join(code.co_varnames[: code.co_argcount])})"


def _lines(code: CodeType) -> Iterator[tuple[int, int]]:
    """The offset of each instruction, and its line; the function's first where it has none."""
    for begin, end, line in code.co_lines():
        for offset in range(begin, end, 2):
            yield offset, line or code.co_firstlineno


def signature(code: CodeType) -> str:
    """A byte, as two hexadecimal digits, for each instruction and the name that it is about."""
    names = (
        f"{each.opname} {each.argval if isinstance(each.argval, str) else ''}"
        for each in dis.get_instructions(code)
        if each.opname not in ("CACHE", "EXTENDED_ARG", "RESUME")
    )
    return bytes(crc32(name.encode(errors="replace")) & 0xFF for name in names).hex()

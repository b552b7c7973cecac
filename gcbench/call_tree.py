"""Whose bytecodes and allocations: a node for each chain of calls, a count for each instruction."""

from collections.abc import Callable, Iterator
from opcode import hasjrel, opmap, opname
from types import CodeType

_SPARE = 512
"""Nodes made beforehand: more than the functions that a step calls."""

LOOK, PREFIX = 1, 2
"""Flags of an instruction. ``LOOK``: what is executed before it may have made or freed a tracked
object. ``PREFIX``: it is the ``EXTENDED_ARG`` of another."""

_ZERO = bytearray(1)
_EXTENDED_ARG, _CACHE = opmap["EXTENDED_ARG"], opmap["CACHE"]
_NEITHER_MAKES_NOR_FREES = frozenset(
    opmap[name]
    for name in (
        "NOP",
        "LOAD_FAST",
        "LOAD_FAST_CHECK",
        "LOAD_FAST_LOAD_FAST",
        "LOAD_CONST",
        "LOAD_DEREF",
        "LOAD_CLOSURE",
        "LOAD_GLOBAL",
        "PUSH_NULL",
        "COPY",
        "SWAP",
        "KW_NAMES",
        "JUMP_FORWARD",
    )
    if name in opmap
)
# What handlers of exceptions begin with; an exception frees what the stack has held.
_BEGINS_NO_HANDLER = _NEITHER_MAKES_NOR_FREES - {opmap["COPY"], opmap["SWAP"], opmap["NOP"]}
_JUMPS = frozenset(hasjrel)
_JUMPS_BACK = frozenset(op for op in hasjrel if "BACKWARD" in opname[op])


class CallNode:
    """A function as it is called by those above it. Counts are by offset into its ``co_code``.

    ``bytecodes``: executed. ``allocations``: rises of the collector's young count from one bytecode
    to the next, which this one has made. ``net``: those less the falls.
    """

    __slots__ = (
        "allocations",
        "bytecodes",
        "children",
        "code",
        "flags",
        "net",
        "num_calls",
        "parent",
    )

    def __init__(self) -> None:
        self.code: CodeType | None = None
        self.parent: CallNode | None = None
        self.children: dict[int, CallNode] = {}
        """By the code's ``id``: a code object would be hashed anew at each look."""
        self.num_calls = 0
        self.flags = bytearray((LOOK,))
        self.bytecodes = [0]
        self.allocations = [0]
        self.net = [0]


class CallTree:
    """All that was called, from the block that counts on down; a node once made stays.

    While something is counted no dictionary, list or tuple is made here, nor a class called, which
    takes a tuple: each would come from a free list or go there, and what is counted would find one
    less or one more.
    """

    def __init__(self, make_node: Callable[[], CallNode]) -> None:
        self._make_node = make_node
        self.root = make_node()
        self._spare: list[CallNode] = []
        self._flags: dict[int, bytearray] = {}
        self.refill()

    def refill(self) -> None:
        """Have enough nodes for what will be counted next; what this frees goes to free lists."""
        self._spare.extend(self._make_node() for _ in range(_SPARE - len(self._spare)))

    def child(self, parent: CallNode, code: CodeType) -> CallNode:
        """The node of a function that ``parent`` calls."""
        node = parent.children.get(id(code))
        if node is None:
            node = self._spare.pop() if self._spare else self._make_node()
            flags = self._flags.get(id(code))
            if flags is None:
                flags = self._flags[id(code)] = instruction_flags(code.co_code)
            node.code, node.parent, node.flags = code, parent, flags
            size = len(flags)
            node.bytecodes *= size
            node.allocations *= size
            node.net *= size
            parent.children[id(code)] = node
        return node

    def nodes(self) -> Iterator[CallNode]:
        """Each node, those above it first; the first is the root, which is no function."""
        waiting = [self.root]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.children.values()))

    def total(self, name: str) -> int:
        """The sum of ``bytecodes``, ``allocations`` or ``net`` over all that was called.

        What the root has is the block's own, and what tracing makes for the first frame.
        """
        return sum(sum(getattr(node, name)) for node in self.nodes() if node is not self.root)


def instruction_flags(code: bytes) -> bytearray:
    """The flags of each instruction, at its offset into ``co_code``; makes no tracked object."""
    size = len(code)
    flags = _ZERO * size
    before = _CACHE  # the operation of the instruction before
    arg = offset = 0
    while offset < size:
        op = code[offset]
        after = offset + 2
        while after < size and code[after] == _CACHE:
            after += 2
        if before not in _NEITHER_MAKES_NOR_FREES or op not in _BEGINS_NO_HANDLER:
            flags[offset] |= LOOK
        arg = arg << 8 | code[offset + 1]
        if op == _EXTENDED_ARG:
            flags[offset] |= PREFIX
        else:
            if op in _JUMPS:
                flags[after - 2 * arg if op in _JUMPS_BACK else after + 2 * arg] |= LOOK
            before, arg = op, 0
        offset = after
    return flags

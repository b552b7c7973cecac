"""Which lines of a function have become dearer: those of two versions beside each other."""

from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher

from msgspec.structs import replace

from gcbench.function_costs import LineCost
from harness.explain.changes import any_stage
from harness.explain.result import FunctionChange, FunctionPlace, LineChange, Side
from harness.explain.sources import Sources


def line_changes(changes: Iterable[FunctionChange], before: Side, after: Side) -> list[LineChange]:
    """Each line that takes more or less than before; lines are matched as `diff` matches them."""
    found: list[LineChange] = []
    older, newer = _Version(before), _Version(after)
    for change in changes:
        if len(change.before) <= 1 and len(change.after) <= 1:
            found += _of_function(change, older, newer)
    return found


_LONGEST = 10_000
"""Lines of a function."""

_ALIKE = 0.8
"""Share of their characters that two lines have in common, from which on they are one."""

_NOTHING = LineCost(0, 0, 0, 0)


class _Version:
    def __init__(self, side: Side) -> None:
        self.rows = side.costs.num_rows
        self.sources = Sources(side.roots)
        self._functions = {
            FunctionPlace(each.file, each.name, each.line): each
            for each in any_stage(side.costs.functions)
        }

    def text(self, where: FunctionPlace) -> list[str]:
        """The function's lines without their indentation, to the last that ran; none unknown."""
        last = max(self.costs(where), default=where.line)
        return [line.strip() for line in self.sources.lines(where.file, where.line, last)]

    def per_row(self, cost: LineCost) -> tuple[float, float, float]:
        """Bytecodes, allocations and net, per request and step."""
        return cost.bytecodes / self.rows, cost.allocations / self.rows, cost.net / self.rows

    def costs(self, where: FunctionPlace) -> dict[int, LineCost]:
        """By line."""
        return {line.line: line for line in self._functions[where].lines}


def _of_function(change: FunctionChange, older: _Version, newer: _Version) -> list[LineChange]:
    before = change.before[0] if change.before else None
    after = change.after[0] if change.after else None
    counterpart = _counterparts(before, after, older, newer)
    theirs = older.costs(before) if before else {}
    found = []
    if after is not None:
        for number, cost in newer.costs(after).items():
            other = theirs.pop(counterpart.get(number, -1), _NOTHING)
            text = newer.sources.line(after.file, number)
            found.append(_change(after, number, text, newer.per_row(cost), older.per_row(other)))
    if before is not None:
        for number, cost in theirs.items():
            text = older.sources.line(before.file, number)
            gone = _change(before, number, text, newer.per_row(_NOTHING), older.per_row(cost))
            found.append(replace(gone, is_gone=True))
    return [each for each in found if each.bytecodes or each.allocations or each.net]


def _counterparts(
    before: FunctionPlace | None, after: FunctionPlace | None, older: _Version, newer: _Version
) -> dict[int, int]:
    """For each line of the newer function the older's line that it was."""
    if before is None or after is None:
        return {}
    old, new = older.text(before), newer.text(after)
    if not (old and new):  # as far from the functions' first lines
        return {after.line + i: before.line + i for i in range(_LONGEST)}
    lines: dict[int, int] = {}
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        places = range(i1, i2), range(j1, j2)
        if tag == "equal" or (tag == "replace" and i2 - i1 == j2 - j1):
            pairs = list(zip(*places, strict=True))
        else:
            pairs = list(_alike(old, new, *places))
        lines |= {after.line + j: before.line + i for i, j in pairs}
    return lines


def _alike(
    old: Sequence[str], new: Sequence[str], before: range, after: range
) -> Iterator[tuple[int, int]]:
    """Lines of a part that was written anew that are nearly the same, in their order."""
    first = before.start
    for j in after:
        for i in range(first, before.stop):
            if SequenceMatcher(None, old[i], new[j], autojunk=False).ratio() >= _ALIKE:
                yield i, j
                first = i + 1
                break


def _change(
    where: FunctionPlace, number: int, text: str, now: Sequence[float], then: Sequence[float]
) -> LineChange:
    bytecodes, allocations, net = (a - b for a, b in zip(now, then, strict=True))
    return LineChange(
        file=where.file,
        line=number,
        function=where.name,
        text=text,
        bytecodes=bytecodes,
        allocations=allocations,
        net=net,
    )

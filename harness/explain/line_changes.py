"""Which lines of a function have become dearer: those of two versions beside each other."""

from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from msgspec.structs import replace

from gcbench.function_costs import LineCost
from harness.explain.attribution import summed
from harness.explain.call_lines import call_lines
from harness.explain.changes import any_stage
from harness.explain.result import (
    CalleeCosts,
    Costs,
    FunctionChange,
    FunctionPlace,
    LineChange,
    Side,
)
from harness.explain.sources import Sources


def line_changes(changes: Iterable[FunctionChange], before: Side, after: Side) -> list[LineChange]:
    """Each line that takes more or less than before; lines are matched as `diff` matches them."""
    found: list[LineChange] = []
    older, newer = _Version(before), _Version(after)
    for change in changes:
        if len(change.before) <= 1 and len(change.after) <= 1:
            lines = _Lines(change, older, newer)
            lines.add_own()
            if change.is_touched:
                lines.add_called(change.beneath)
            else:
                lines.leave_out_what_stands_elsewhere(change)
            found += [
                each
                for each in lines.found.values()
                if each.bytecodes or each.allocations or each.net
            ]
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
        self._functions = {FunctionPlace.of(each): each for each in any_stage(side.costs.functions)}
        self._named = {(each.file, each.name): each for each in self._functions}

    def text(self, where: FunctionPlace) -> list[str]:
        """The function's lines without their indentation, to the last that ran; none unknown."""
        last = max(self.costs(where), default=where.line)
        return [line.strip() for line in self.sources.lines(where.file, where.line, last)]

    def has(self, where: FunctionPlace) -> bool:
        """Whether it ran, at that line."""
        return where in self._functions

    def call_lines(self, where: FunctionPlace | None, callee: FunctionPlace) -> list[int]:
        """Where the function calls another one that ran; none where it is not there."""
        place = self._named.get(callee[:2])
        return call_lines(self.sources, where, place) if where and place else []

    def per_row(self, cost: LineCost | Costs) -> tuple[float, float, float]:
        """Bytecodes, allocations and net, per request and step."""
        return cost.bytecodes / self.rows, cost.allocations / self.rows, cost.net / self.rows

    def own(self, where: FunctionPlace) -> Costs:
        """What it took itself."""
        return Costs.of(self._functions[where])

    def costs(self, where: FunctionPlace) -> dict[int, LineCost]:
        """By line."""
        return {line.line: line for line in self._functions[where].lines}


class _Line(NamedTuple):
    """A line of the newer function, or one that only the older had."""

    is_gone: bool
    number: int


class _Lines:
    """What the lines of a function take more or less, own costs first, then callees'."""

    def __init__(self, change: FunctionChange, older: _Version, newer: _Version) -> None:
        self._before = change.before[0] if change.before else None
        self._after = change.after[0] if change.after else None
        self._older, self._newer = older, newer
        self._counterpart = _counterparts(self._before, self._after, older, newer)
        self.found: dict[_Line, LineChange] = {}

    def add_own(self) -> None:
        """Each line of either side in one change."""
        older, newer = self._older, self._newer
        theirs = older.costs(self._before) if self._before else {}
        for number, cost in newer.costs(self._after).items() if self._after else ():
            other = theirs.pop(self._counterpart.get(number, -1), _NOTHING)
            self._add(_Line(False, number), newer.per_row(cost), older.per_row(other))
        for number, cost in theirs.items():
            self._add(_Line(True, number), newer.per_row(_NOTHING), older.per_row(cost))

    def add_called(self, beneath: Iterable[CalleeCosts]) -> None:
        """What unchanged code takes more or less, a callee's on one line that calls it.

        Where no name tells which that is, on the line that changed most itself.
        """
        usual = self._usual()
        callees: dict[FunctionPlace, list[CalleeCosts]] = {}
        for each in beneath:
            callees.setdefault(each.callee, []).append(each)
        for callee, costs in callees.items():
            now = self._newer.per_row(summed(each.after for each in costs))
            then = self._older.per_row(summed(each.before for each in costs))
            self._add(self._call_line(callee, is_more=now > then) or usual, now, then)

    def leave_out_what_stands_elsewhere(self, change: FunctionChange) -> None:
        """Of an unchanged function: by lines it is not known what ran for which caller.

        What still stands at it is on the line that changed most.
        """
        sides = (
            (self._older, self._before, change.costs_before),
            (self._newer, self._after, change.costs_after),
        )
        if all(where is None or version.own(where) == costs for version, where, costs in sides):
            return
        usual, self.found = self._usual(), {}
        then, now = (version.per_row(costs) for version, _, costs in sides)
        self._add(usual, now, then)

    def _usual(self) -> _Line:
        changed = {line: abs(each.bytecodes) for line, each in self.found.items() if each.bytecodes}
        where = self._after or self._before
        assert where is not None
        first = _Line(self._after is None, where.line)
        return max(changed, key=lambda line: changed[line], default=first)

    def _call_line(self, callee: FunctionPlace, *, is_more: bool) -> _Line | None:
        """One that calls it only now where it takes more, or only before where it takes less.

        A comprehension runs where it stands.
        """
        now = {line: number for number, line in self._counterpart.items()}
        if self._stands_within(callee):
            if self._newer.has(callee):
                return _Line(False, callee.line)
            line = now.get(callee.line)
            return _Line(True, callee.line) if line is None else _Line(False, line)
        new, old = (
            version.call_lines(where, callee)
            for version, where in ((self._newer, self._after), (self._older, self._before))
        )
        kept = [line for line in new if self._counterpart.get(line) in old]
        only_new = [_Line(False, line) for line in new if line not in kept]
        only_old = [
            _Line(False, now[line]) if line in now else _Line(True, line)
            for line in old
            if now.get(line) not in new
        ]
        both = [_Line(False, line) for line in kept]
        return next(iter([*(only_new if is_more else only_old), *both]), None)

    def _stands_within(self, callee: FunctionPlace) -> bool:
        """Whether it is a comprehension or the like of the function itself."""
        return any(
            where is not None
            and callee.file == where.file
            and callee.name.startswith(f"{where.name}.<locals>.<")
            for where in (self._before, self._after)
        )

    def _add(self, line: _Line, now: Sequence[float], then: Sequence[float]) -> None:
        known = self.found.get(line) or self._line(line)
        bytecodes, allocations, net = (a - b for a, b in zip(now, then, strict=True))
        self.found[line] = replace(
            known,
            bytecodes=known.bytecodes + bytecodes,
            allocations=known.allocations + allocations,
            net=known.net + net,
        )

    def _line(self, line: _Line) -> LineChange:
        where = self._before if line.is_gone else self._after
        version = self._older if line.is_gone else self._newer
        assert where is not None
        return LineChange(
            file=where.file,
            line=line.number,
            function=where.name,
            text=version.sources.line(where.file, line.number),
            bytecodes=0.0,
            allocations=0.0,
            net=0.0,
            is_gone=line.is_gone,
        )


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

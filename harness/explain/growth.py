"""Where a cost came in: one version after another, each function's change at each."""

from collections.abc import Iterator, Sequence
from itertools import count, pairwise
from typing import NamedTuple

from gcbench.function_costs import FunctionCost
from harness.explain.changes import any_stage
from harness.explain.pairing import PairKind, pair_functions
from harness.explain.result import Arrival, Side


def arrivals(sides: Sequence[Side]) -> list[Arrival]:
    """All changes from each version to the next that are not nothing, in their order."""
    found: list[Arrival] = []
    numbers = count()
    series: dict[_Place, int] = {}
    gone: dict[str, int] = {}
    for before, after in pairwise(sides):
        here: dict[_Place, int] = {}
        for step in _steps(before, after):
            known = series.get(_place(step.before)) if step.before else gone.get(step.named.name)
            number = next(numbers) if known is None else known
            if step.after:
                here[_place(step.after)] = number
            else:
                gone[step.named.name] = number  # it may come again
            found += _arrival(step, number, before, after)
        series = here
    return found


_Place = tuple[str, str, int]


class _Step(NamedTuple):
    """A function from one version to the next; None where it is not there."""

    before: FunctionCost | None
    after: FunctionCost | None
    kind: PairKind

    @property
    def named(self) -> FunctionCost:
        """Where its name is from."""
        named = self.after or self.before
        assert named is not None
        return named


def _steps(before: Side, after: Side) -> Iterator[_Step]:
    """Each function of either side once; a part of one that was split or joined by itself."""
    then, now = any_stage(before.costs.functions), any_stage(after.costs.functions)
    for each in pair_functions(then, now):
        if not (each.before and each.after):
            yield from (_Step(then[i], None, each.kind) for i in each.before)
            yield from (_Step(None, now[i], each.kind) for i in each.after)
            continue
        # The first of either side are the one function, all others its parts.
        (old, *joined), (new, *split) = each.before, each.after
        has_parts = bool(joined or split)
        kept: PairKind = "paired" if then[old].name == now[new].name else "renamed"
        yield _Step(then[old], now[new], kept if has_parts else each.kind)
        yield from (_Step(then[i], None, "joined") for i in joined)
        yield from (_Step(None, now[i], "split") for i in split)


def _arrival(step: _Step, series: int, before: Side, after: Side) -> Iterator[Arrival]:
    bytecodes = objects = 0.0
    if step.after:
        bytecodes += step.after.bytecodes / after.costs.num_rows
        objects += step.after.allocations / after.costs.num_rows
    if step.before:
        bytecodes -= step.before.bytecodes / before.costs.num_rows
        objects -= step.before.allocations / before.costs.num_rows
    if bytecodes or objects:
        yield Arrival(
            version=after.label,
            series=series,
            kind=step.kind,
            stage=step.named.stage,
            function=step.named.name,
            file=step.named.file,
            line=step.named.line,
            bytecodes=bytecodes,
            objects=objects,
        )


def _place(function: FunctionCost) -> _Place:
    return function.file, function.name, function.line

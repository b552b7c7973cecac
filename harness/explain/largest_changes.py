"""The functions that a change of the exact costs is mostly made of, for reports of other things."""

from collections.abc import Iterable, Sequence, Set
from typing import NamedTuple, get_args

import msgspec

from harness.explain.attribution import touched_functions
from harness.explain.beneath import Beneath, beneath
from harness.explain.changes import function_changes
from harness.explain.line_changes import line_changes
from harness.explain.pairing import PairKind
from harness.explain.ranking import part_of_step
from harness.explain.result import Costs, FunctionChange, FunctionPlace, Side
from harness.metrics import When
from harness.trial.output_hashes import QualifiedName
from harness.trial.step_costs import RequestFunctionCost

MOST = 5

_LEAST = 1e-3
"""Part of a step: what a resumed iterator or a cache that grows moves is less."""


class LargestChange(msgspec.Struct, frozen=True, kw_only=True):
    """What a function takes more, or less, than it did, in ``beneath`` unchanged ones for it.

    Those are of a step, the largest changes first, and at most `MOST`. ``before``: what it was
    called, "" where it is new. ``text``: its line that changed most, at ``line``; where that is not
    known, "" and the function's first line.
    """

    when: When
    kind: PairKind
    function: str
    before: str
    file: str
    line: int
    text: str
    bytecodes: float
    allocations: float
    beneath: tuple[Beneath, ...] = ()


def largest_changes(before: Side, after: Side, most: int = MOST) -> list[LargestChange]:
    """Of a step, then of a request's life, at most ``most`` each, the largest first.

    A change is as large as its part of all bytecodes or of all tracked objects, the larger of both.
    Functions of the same code that execute as many bytecodes come last: they make other objects
    only because another function has left CPython's free lists in another state. Beside the steps
    functions that have changed come first: there it is not known who has called the others.
    """
    part, touched = part_of_step(before, after), touched_functions(before, after)
    steps = [
        (bool(more.bytecodes) or not change.does_alike, size, change, more)
        for change in function_changes(before.costs, after.costs, touched)
        if (size := part(*(more := _more(change, before, after)))) >= _LEAST
    ]
    steps.sort(key=lambda each: each[:2], reverse=True)
    found = [_of_step(change, more, before, after) for _, _, change, more in steps[:most]]
    new = after.costs.functions_counted() - before.costs.functions_counted()
    gone = before.costs.functions_counted() - after.costs.functions_counted()
    for when in get_args(When)[1:]:
        then, now = (side.costs.per_request.get(when, []) for side in (before, after))
        found += _of_requests(when, then, now, touched, new, gone)[:most]
    return found


class _More(NamedTuple):
    """Per request and step."""

    bytecodes: float
    allocations: float


def _more(change: FunctionChange, before: Side, after: Side) -> _More:
    def per_row(costs: Costs, side: Side) -> tuple[float, float]:
        rows = side.costs.num_rows
        return costs.bytecodes / rows, costs.allocations / rows

    now, then = per_row(change.costs_after, after), per_row(change.costs_before, before)
    return _More(now[0] - then[0], now[1] - then[1])


def _of_step(change: FunctionChange, more: _More, before: Side, after: Side) -> LargestChange:
    where = (change.after or change.before)[0]
    part = part_of_step(before, after)
    line = max(
        (each for each in line_changes([change], before, after) if each.text),
        key=lambda each: part(each.bytecodes, each.allocations),
        default=None,
    )
    return LargestChange(
        when="step",
        kind=change.kind,
        function=_names(change.after or change.before),
        before=_names(change.before),
        file=line.file if line else where.file,
        line=line.line if line else where.line,
        text=line.text if line else "",
        bytecodes=more.bytecodes,
        allocations=more.allocations,
        beneath=tuple(
            each
            for each in beneath(change, before, after)[:MOST]
            if part(each.bytecodes, each.allocations) >= _LEAST
        ),
    )


def _of_requests(
    when: When,
    before: Iterable[RequestFunctionCost],
    after: Iterable[RequestFunctionCost],
    touched: Set[QualifiedName],
    new: Set[QualifiedName],
    gone: Set[QualifiedName],
) -> list[LargestChange]:
    """By file and name, as long as a function keeps them.

    ``new`` and ``gone``: functions that only one side has counted, anywhere.
    """
    then, now = _by_function(before), _by_function(after)
    found = []
    for function in {**now, **then}:
        mine, theirs = now.get(function, []), then.get(function, [])
        change = LargestChange(
            when=when,
            kind="new" if function in new else "gone" if function in gone else "paired",
            function=function[1],
            before="" if function in new else function[1],
            file=function[0],
            line=(mine or theirs)[0].line,
            text="",
            bytecodes=_difference(
                [each.bytecodes for each in mine], [each.bytecodes for each in theirs]
            ),
            allocations=_difference(
                [each.allocations for each in mine], [each.allocations for each in theirs]
            ),
        )
        if change.bytecodes or change.allocations:
            found.append(change)
    return sorted(
        found,
        key=lambda each: (
            (each.file, each.function) not in touched,
            -abs(each.bytecodes),
            -abs(each.allocations),
        ),
    )


def _by_function(
    costs: Iterable[RequestFunctionCost],
) -> dict[tuple[str, str], list[RequestFunctionCost]]:
    found: dict[tuple[str, str], list[RequestFunctionCost]] = {}
    for each in costs:
        found.setdefault((each.file, each.name), []).append(each)
    return found


def _difference(now: Iterable[float], then: Iterable[float]) -> float:
    """Means of a few requests: what they differ in by rounding is nothing."""
    return round(sum(now) - sum(then), 6)


def _names(functions: Sequence[FunctionPlace]) -> str:
    return " + ".join(each.name for each in functions)

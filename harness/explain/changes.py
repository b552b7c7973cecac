"""What each function takes more or less in one version than in another."""

from collections.abc import Iterable, Mapping, Sequence, Set

from gcbench.function_costs import FunctionCost, LineCost
from harness.explain.attribution import Ran, attributed_costs, summed
from harness.explain.pairing import pair_functions
from harness.explain.result import CalleeCosts, Costs, FunctionChange, FunctionPlace
from harness.trial.output_hashes import QualifiedName
from harness.trial.step_costs import StepCosts


def function_changes(
    before: StepCosts, after: StepCosts, touched: Set[QualifiedName] = frozenset()
) -> list[FunctionChange]:
    """Each function of either side in one of them; sums over them are the sides' own.

    ``touched``: at which unchanged code stands that they have called.
    """
    then, now = any_stage(before.functions), any_stage(after.functions)
    old, new = attributed_costs(before, touched), attributed_costs(after, touched)
    found = []
    pairs = pair_functions(then, now)
    pair_of = (
        {place: number for number, each in enumerate(pairs) for place in _where(then, each.before)},
        {place: number for number, each in enumerate(pairs) for place in _where(now, each.after)},
    )
    for each in pairs:
        theirs, mine = [then[i] for i in each.before], [now[i] for i in each.after]
        were, are = _where(then, each.before), _where(now, each.after)
        found.append(
            FunctionChange(
                kind=each.kind,
                stage=(mine + theirs)[0].stage,
                before=were,
                after=are,
                costs_before=summed(old[place].costs for place in were),
                costs_after=summed(new[place].costs for place in are),
                beneath=_beneath(
                    [old[place].beneath for place in were],
                    [new[place].beneath for place in are],
                    pair_of,
                ),
                is_touched=any(place[:2] in touched for place in (*were, *are)),
                does_alike=sorted(one.code for one in theirs) == sorted(one.code for one in mine),
            )
        )
    return found


def _where(functions: Sequence[FunctionCost], places: Iterable[int]) -> list[FunctionPlace]:
    return [FunctionPlace.of(functions[place]) for place in places]


_PairOf = Mapping[FunctionPlace, int]
"""Which pair of functions a version's function is in."""


def _beneath(
    before: Sequence[Mapping[Ran, Costs]],
    after: Sequence[Mapping[Ran, Costs]],
    pair_of: tuple[_PairOf, _PairOf],
) -> list[CalleeCosts]:
    """What both sides' functions have beneath them, whatever lines it stands on.

    By pairs and not by names: two comprehensions of one function have the same.
    """
    costs: dict[tuple[int, int], tuple[list[Costs], list[Costs]]] = {}
    ran: dict[tuple[int, int], Ran] = {}
    for side, standing in enumerate((before, after)):
        for each, found in (item for one in standing for item in one.items()):
            key = pair_of[side][each.callee], pair_of[side][each.function]
            costs.setdefault(key, ([], []))[side].append(found)
            ran[key] = each
    return [
        CalleeCosts(
            callee=ran[key].callee,
            function=ran[key].function,
            before=summed(then),
            after=summed(now),
        )
        for key, (then, now) in costs.items()
    ]


def any_stage(functions: Iterable[FunctionCost]) -> list[FunctionCost]:
    """Functions over all stages, each under the one in which it executes most."""
    merged: dict[tuple[str, str, int], FunctionCost] = {}
    for each in sorted(functions, key=lambda each: -each.bytecodes):
        where = (each.file, each.name, each.line)
        merged[where] = _sum(merged[where], each) if where in merged else each
    return list(merged.values())


def _sum(one: FunctionCost, other: FunctionCost) -> FunctionCost:
    lines = {line.line: line for line in one.lines}
    for line in other.lines:
        known = lines.get(line.line, LineCost(line.line, 0, 0, 0))
        lines[line.line] = LineCost(
            line.line,
            known.bytecodes + line.bytecodes,
            known.allocations + line.allocations,
            known.net + line.net,
        )
    return one._replace(
        calls=one.calls + other.calls,
        bytecodes=one.bytecodes + other.bytecodes,
        allocations=one.allocations + other.allocations,
        net=one.net + other.net,
        all_bytecodes=one.all_bytecodes + other.all_bytecodes,
        all_allocations=one.all_allocations + other.all_allocations,
        lines=[lines[line] for line in sorted(lines)],
    )

"""What stands at each function: its own costs, and those of unchanged code that it has called.

A change is to be read where its author wrote: a call of `logging` costs what it does at the line
that calls it, not in five functions of `logging`.
"""

from collections.abc import Iterable, Set
from pathlib import Path
from typing import NamedTuple

from harness.explain.changed_functions import differing_functions
from harness.explain.result import Costs, FunctionPlace, Side
from harness.trial.output_hashes import QualifiedName
from harness.trial.step_costs import StepCosts


class Ran(NamedTuple):
    """A function that is unchanged, as ran below ``callee``, which a changed one calls itself."""

    callee: FunctionPlace
    function: FunctionPlace


class _Owner(NamedTuple):
    """A touched function; ``callee``: the first below it on the way to a call, None at itself."""

    function: FunctionPlace
    callee: FunctionPlace | None


class Attributed(NamedTuple):
    """``costs``: of the function and of all that is in ``beneath``, which ran on its behalf."""

    costs: Costs
    beneath: dict[Ran, Costs]


def touched_functions(before: Side, after: Side) -> frozenset[QualifiedName]:
    """Of the files that ran and lie below the sides' first folders, what either has otherwise."""
    old, new = (side.roots[0] if side.roots else "" for side in (before, after))
    if not (old and new):
        return frozenset()
    counted = before.costs.functions_counted() | after.costs.functions_counted()
    ran = sorted({file for file, _ in counted})
    base, head = Path(old), Path(new)
    files = [file for file in ran if (base / file).is_file() or (head / file).is_file()]
    return differing_functions(base, head, files)


def attributed_costs(
    costs: StepCosts, touched: Set[QualifiedName] = frozenset()
) -> dict[FunctionPlace, Attributed]:
    """What stands at each function; it adds up to all that was counted.

    What a function took that is not ``touched`` stands at the nearest of its callers that is, and
    where none is, at itself.
    """
    places = [FunctionPlace.of(each) for each in costs.functions]
    found = dict.fromkeys(places, Costs())
    for place, each in zip(places, costs.functions, strict=True):
        own = Costs.of(each)
        found[place] = summed((found[place], own))
    beneath: dict[FunctionPlace, dict[Ran, Costs]] = {place: {} for place in places}
    above: list[_Owner | None] = []
    for call in costs.calls:
        place = places[call.function]
        owner = above[call.parent] if call.parent >= 0 else None
        if (place.file, place.name) in touched:
            owner = _Owner(place, None)
        elif owner is not None:
            owner = _Owner(owner.function, owner.callee or place)
        above.append(owner)
        if owner is not None and owner.callee is not None:
            moved = Costs(0, call.bytecodes, call.allocations, call.net)
            found[place] = summed((found[place], Costs(*(-each for each in moved))))
            found[owner.function] = summed((found[owner.function], moved))
            mine, ran = beneath[owner.function], Ran(owner.callee, place)
            mine[ran] = summed((mine.get(ran, Costs()), moved))
    return {place: Attributed(found[place], beneath[place]) for place in found}


def summed(costs: Iterable[Costs]) -> Costs:
    """Their sum."""
    return Costs(*map(sum, zip(Costs(), *costs, strict=True)))

"""Changed code that no cell of a gate has executed: of that its verdict says nothing."""

import re
from collections.abc import Iterable, Iterator, Sequence, Set

from msgspec.structs import replace

from harness.axes import Cell
from harness.experiment.outcomes import Trials
from harness.explain.changed_functions import MODULE, ChangedFunction, Statement
from harness.trial.output_hashes import QualifiedName, RanFunction, of_function
from harness.trial.spec import Mode
from harness.trial.step_costs import StepCosts

_TRACED: tuple[Mode, ...] = ("opcodes", "grid")
"""Modes that know each function which they have counted."""


_MAKES = re.compile(r"(?P<what>.+)\.__(init|new|post_init)__$")
"""What makes an object, by name."""


def functions_run(trials: Trials, cells: Iterable[Cell]) -> list[RanFunction]:
    """What any of the cells has executed while it served requests, aborted them or ran the grid.

    Nothing where one of them cannot tell.
    """
    found: set[RanFunction] = set()
    for cell in cells:
        served = trials.counted_in("outputs", cell)
        if served is None or not served.ran:
            return []
        found.update(served.ran)
        for mode in _TRACED:
            counted = trials.counted_in(mode, cell)
            if counted is not None and counted.costs is not None:
                found.update(counted.ran, _counted(counted.costs))
    return sorted(found)


def _counted(costs: StepCosts) -> Iterator[RanFunction]:
    yield from map(RanFunction.counted, costs.functions)
    for part in costs.per_request.values():
        yield from (RanFunction(each.file, each.name) for each in part)


def not_run(
    changed: Sequence[ChangedFunction], ran: Sequence[RanFunction]
) -> list[ChangedFunction]:
    """Of ``changed`` what is not in ``ran``, of a function that has run the statements that have
    not; none where nobody can tell.

    A module's own code has run where any function of it has, and what makes an object where any of
    its methods has: that comes before the window.
    """
    if not ran:
        return []
    modules = {each.file for each in ran}
    classes = {(each.file, each.name.rpartition(".")[0]) for each in ran}
    lines: dict[QualifiedName, set[int]] = {}
    for each in ran:
        lines.setdefault(of_function(each.file, each.name), set()).update(each.lines)
    found = []
    for one in changed:
        if one.name == MODULE and one.file in modules:
            continue
        if (made := _MAKES.match(one.name)) and (one.file, made["what"]) in classes:
            continue
        mine = lines.get((one.file, one.name))
        if mine is None:
            found.append(one)
        elif left := _left(one.statements, mine):
            found.append(replace(one, line=left[0].first, statements=left))
    return found


def _left(statements: Sequence[Statement], ran: Set[int]) -> tuple[Statement, ...]:
    if not ran:  # nobody has looked at lines
        return ()
    return tuple(each for each in statements if ran.isdisjoint(range(each.first, each.last + 1)))


def size(functions: Iterable[ChangedFunction]) -> int:
    """How much code these are, in statements."""
    return sum(max(1, len(each.statements)) for each in functions)

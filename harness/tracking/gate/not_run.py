"""Changed functions that no cell of a gate has executed: of those its verdict says nothing."""

from collections.abc import Iterable, Sequence

from harness.axes import Cell
from harness.experiment.outcomes import Trials
from harness.explain.changed_functions import MODULE, ChangedFunction
from harness.trial.output_hashes import RanFunction
from harness.trial.spec import Mode

_TRACED: tuple[Mode, ...] = ("opcodes", "grid")
"""Modes that know each function which they have counted."""


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
                found |= {RanFunction(*each) for each in counted.costs.functions_counted()}
    return sorted(found)


def not_run(
    changed: Sequence[ChangedFunction], ran: Sequence[RanFunction]
) -> list[ChangedFunction]:
    """Of ``changed`` what is not in ``ran``; none where nobody can tell.

    A module's own code has run where any function of it has.
    """
    if not ran:
        return []
    modules = {each.file for each in ran}
    known = {*ran, *(RanFunction(file, MODULE) for file in modules)}
    return [each for each in changed if RanFunction(each.file, each.name) not in known]

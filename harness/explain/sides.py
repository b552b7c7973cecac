"""A version's costs by function, read from the trial that counted them."""

from msgspec.structs import replace

from gcbench.code_root import code_root
from harness.axes import Cell
from harness.experiment.outcomes import Trials
from harness.experiment.plan import without_collector
from harness.explain.result import Side
from harness.not_measured import NotMeasured
from harness.trial.spec import Mode

BY_FUNCTION: Mode = "opcodes"
"""The mode in which a trial says which functions its counts are of."""


def read_side(trials: Trials, cell: Cell, label: str, root: str) -> Side | NotMeasured:
    """What was counted of a cell whose engine's files lie below ``root``, or why nothing was."""
    found = trials.counted_in(BY_FUNCTION, cell)
    if found is None:
        ran = (cell, without_collector(cell))
        failures = [each.reason for each in trials.failures if each.cell in ran]
        return NotMeasured(f"{label}: {'; '.join(failures) or 'its trial gave no result'}")
    if found.costs is None:
        wanted = (
            f"no step was traced; give a smaller --every than {trials.plan.trace_every}"
            if trials.plan.trace_every
            else "no step was followed by another with a full batch; give more output tokens, or a "
            "smaller --batch-size"
        )
        return NotMeasured(f"{label}: {wanted}")
    roots, costs, metrics = [root, str(code_root())], found.costs, found.metrics
    grid = trials.counted_in("grid", cell)
    if grid is not None and grid.costs is not None:
        by_part = costs.per_request | grid.costs.per_request
        costs, metrics = replace(costs, per_request=by_part), metrics | grid.metrics
    return Side(label=label, roots=roots, costs=costs, metrics=metrics)

"""A cell without a collector beside one with it: what there is to gain, and no setting to take."""

from harness.experiment.result import CellResult, Comparison, ExperimentResult


def is_off(cell: CellResult) -> bool:
    """Whether nothing ever collects in a cell: its memory may grow without end."""
    return "disabled" in str(cell.axes.get("gc")).split("+")


def references(result: ExperimentResult) -> set[str]:
    """The ids of candidates that are none: off, where their baseline collects."""
    off = {cell.id for cell in result.cells if is_off(cell)}
    return {
        each.candidate
        for each in result.comparisons
        if each.candidate in off and each.baseline not in off
    }


def candidates(result: ExperimentResult) -> list[Comparison]:
    """The comparisons of those that may be recommended."""
    no_candidates = references(result)
    return [each for each in result.comparisons if each.candidate not in no_candidates]

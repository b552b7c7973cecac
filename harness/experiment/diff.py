"""Two stored experiments against each other, cell by cell, by the rules of one comparison."""

from collections.abc import Iterator

import msgspec
import numpy as np

from harness.axes import AXES
from harness.experiment.comparisons import comparisons
from harness.experiment.result import CellResult, Comparison, ExperimentResult
from harness.experiment.same_origin import machine_differences
from harness.metrics import METRICS
from harness.result.result import Result
from harness.statistics.paired_ratio import FEWEST_PAIRS, Ratio, paired_ratio

_OF_THE_CODE = ("release",)
"""Axes in which the two sides may differ: what is asked is what the code has changed."""


class DiffResult(Result, frozen=True, kw_only=True, tag="diff"):
    """What changed from one experiment to the other.

    ``not_compared``: a sentence for each cell that has no equal on the other side. Sides are the
    experiments' names, ``baseline`` of a comparison is the cell in the first.
    """

    base: str
    head: str
    tolerance: float
    comparisons: list[Comparison]
    not_compared: list[str]

    @property
    def is_worse(self) -> bool:
        """Whether any cell is."""
        return any(each.verdict == "worse" for each in self.comparisons)


def diff(base: ExperimentResult, head: ExperimentResult, tolerance: float) -> DiffResult:
    """Every cell of ``head`` against its equal in ``base``; like metrics are one family.

    Rounds are paired in their order; samples that are parts of a round decide nothing. Raises
    ValueError where machine or interpreter differ, or no cell has an equal.
    """
    if differing := [*machine_differences(base.machine, head.machine), *_interpreters(base, head)]:
        raise ValueError(
            f"{base.name} and {head.name} cannot be compared: {'; '.join(differing)}; "
            "measure both on one machine, with one interpreter"
        )
    hashes = [{each.name: each.hash for each in result.workloads} for result in (base, head)]
    others = {_key(cell): cell for cell in base.cells}
    families: dict[str, list[tuple[CellResult, CellResult]]] = {}
    missing = []
    for cell in head.cells:
        workload = str(cell.axes.get("workload", ""))
        other = others.pop(_key(cell), None)
        if other is None:
            missing.append(f"{cell.id}: {base.name} has no such cell.")
        elif hashes[0].get(workload) != hashes[1].get(workload):
            missing.append(f"{cell.id}: workload {workload} is not the same requests in both.")
        elif other.tokens_sha256 != cell.tokens_sha256:
            missing.append(f"{cell.id}: the tokens are others; different work has no ratio.")
        else:
            for metric in _deciders(cell, head):
                families.setdefault(metric, []).append((other, cell))
    missing += [f"{cell.id}: {head.name} has no such cell." for cell in others.values()]
    rounds = {
        (before.id, after.id): min(before.samples, after.samples)
        for pairs in families.values()
        for before, after in pairs
    }
    ratios, failed = _ratios(families)
    missing += failed
    found: list[Comparison] = []
    for metric, of_cells in ratios.items():
        # What judges the same cells by other metrics belongs to the same question.
        also = [
            of[names].p
            for other, of in ratios.items()
            if other != metric
            for names in of_cells.keys() & of.keys()
        ]
        direction = METRICS[metric].direction
        assert direction != "neither"
        judged = comparisons(
            metric, list(of_cells), list(of_cells.values()), direction, tolerance, also
        )
        found += [_of_whole_rounds(each, rounds[each.baseline, each.candidate]) for each in judged]
    if not found:
        raise ValueError(
            f"{base.name} and {head.name} have nothing to compare: {missing[0] if missing else ''}"
        )
    return DiffResult(
        name=f"{head.name} against {base.name}",
        machine=head.machine,
        base=base.name,
        head=head.name,
        tolerance=tolerance,
        comparisons=found,
        not_compared=missing,
    )


def _of_whole_rounds(comparison: Comparison, rounds: int) -> Comparison:
    """Samples that are parts of a round are of one start of a server, and decide nothing."""
    if rounds >= comparison.rounds:
        return comparison
    return msgspec.structs.replace(comparison, verdict="inconclusive", rounds=rounds)


def _ratios(
    families: dict[str, list[tuple[CellResult, CellResult]]],
) -> tuple[dict[str, dict[tuple[str, str], Ratio]], list[str]]:
    """By metric and the names of both cells, and why some have none."""
    found: dict[str, dict[tuple[str, str], Ratio]] = {}
    missing = []
    for metric, pairs in families.items():
        for before, after in pairs:
            try:
                ratio = _ratio(metric, before, after, len(pairs))
            except ValueError as why:
                missing.append(f"{after.id}: {why}")
            else:
                found.setdefault(metric, {})[before.id, after.id] = ratio
    return found, missing


def _ratio(metric: str, before: CellResult, after: CellResult, family: int) -> Ratio:
    sides = [
        cell.metrics[metric].samples if metric in cell.metrics else [] for cell in (before, after)
    ]
    rounds = min(map(len, sides))
    if rounds < FEWEST_PAIRS:
        raise ValueError(f"{rounds} rounds of {metric} on both sides, an interval needs 3.")
    one, other = (np.array(side[:rounds], dtype=np.float64) for side in sides)
    return paired_ratio(one, other, family)


def _deciders(cell: CellResult, result: ExperimentResult) -> list[str]:
    """The metric that decided in the cell's group; where nothing was compared, all that decide."""
    own = [each.metric for each in result.comparisons if cell.id in (each.baseline, each.candidate)]
    return own[:1] or result.decide


def _key(cell: CellResult) -> tuple[object, ...]:
    """What a cell is, less its code; an axis that one side does not know is at its default."""
    return tuple(
        cell.axes.get(name, axis.default) for name, axis in AXES.items() if name not in _OF_THE_CODE
    )


def _interpreters(base: ExperimentResult, head: ExperimentResult) -> Iterator[str]:
    known = [
        sorted({cell.interpreter.partition(", collector ")[0] for cell in side.cells} - {""})
        for side in (base, head)
    ]
    if all(known) and known[0] != known[1]:
        yield f"interpreter: {', '.join(known[0])} and {', '.join(known[1])}"

"""From what was counted of some versions to the body of an answer, or why there is none."""

from collections.abc import Sequence
from typing import NamedTuple

from gcbench.code_root import code_root
from harness.axes import Cell
from harness.experiment.outcomes import Trials
from harness.explain.attribution import touched_functions
from harness.explain.changes import function_changes
from harness.explain.growth import arrivals
from harness.explain.line_changes import line_changes
from harness.explain.price import prices
from harness.explain.result import By, FunctionsBody, GrowthBody, Side, SitesBody
from harness.explain.sides import read_side
from harness.explain.sites import by_line
from harness.explain.version_cost import version_cost
from harness.not_measured import NotMeasured
from harness.trial.spec import Mode

BY_SITE: Mode = "sites"
"""The mode in which a trial looks at what collections find."""


class ExplainedVersion(NamedTuple):
    """``cell`` runs it; below ``root`` lie its files."""

    label: str
    cell: Cell
    root: str


def functions_body(
    trials: Trials, versions: Sequence[ExplainedVersion], by: By
) -> FunctionsBody | NotMeasured:
    """What the functions of one version take, or of the first of two, beside the second."""
    sides, failures = _read(trials, versions)
    if failures:
        return NotMeasured(failures[0])
    side, against = sides[0], sides[1] if len(sides) > 1 else None
    if against is None:
        return FunctionsBody(by=by, side=side)
    touched = touched_functions(against, side)
    changes = function_changes(against.costs, side.costs, touched)
    lines = line_changes(changes, against, side)
    return FunctionsBody(by=by, side=side, against=against, changes=changes, lines=lines)


def growth_body(
    trials: Trials, versions: Sequence[ExplainedVersion], by: By, left_out: Sequence[str]
) -> GrowthBody | NotMeasured:
    """With which of the versions that could be counted each function became dearer.

    ``left_out``: why others could not be run, a sentence each.
    """
    sides, failures = _read(trials, versions)
    failures = [*left_out, *failures]
    if not sides:
        return NotMeasured("; ".join(failures))
    costs = list(map(version_cost, sides))
    return GrowthBody(by=by, versions=costs, arrivals=arrivals(sides), left_out=failures)


def sites_body(
    trials: Trials, version: ExplainedVersion, folders: Sequence[str]
) -> SitesBody | NotMeasured:
    """Whose objects the collections of a version found young.

    ``folders``: whose code is searched for what a change of type would touch.
    """
    trial = trials.counted_in(BY_SITE, version.cell)
    if trial is None or trial.sites is None:
        reasons = "; ".join(each.reason for each in trials.failures)
        return NotMeasured(f"{version.label}: {reasons or 'its trial gave no result'}")
    num_steps = round(trial.metrics["num_steps"] or 0)
    if not sum(trial.sites.collections):
        return NotMeasured(
            f"{version.label}: the collector did not run once in {num_steps} steps under --gc "
            f"{version.cell.gc}; choose another policy, a larger batch or longer outputs"
        )
    roots = [version.root, str(code_root())]
    return SitesBody(
        label=version.label,
        num_steps=num_steps,
        roots=roots,
        found=trial.sites,
        prices=prices(by_line(trial.sites), roots, folders),
    )


def _read(trials: Trials, versions: Sequence[ExplainedVersion]) -> tuple[list[Side], list[str]]:
    """The versions that were counted, and a sentence for each that was not."""
    found = [read_side(trials, each.cell, each.label, each.root) for each in versions]
    sides = [side for side in found if isinstance(side, Side)]
    return sides, [each.reason for each in found if isinstance(each, NotMeasured)]

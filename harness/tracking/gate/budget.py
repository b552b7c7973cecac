"""How much exact metrics may grow from a release on: a floor for each change has no memory."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from harness.axes import Cell
from harness.experiment.outcomes import Trials
from harness.metrics import METRICS, Metric
from harness.tracking.gate.accepts_file import ACCEPTS_FILE, read_accepts
from harness.tracking.gate.plan import EXACT_MODES
from harness.tracking.gate.trees import WORK_TREE, Tree, checkout, commit_with
from harness.tracking.gate.waivers import OUTPUTS, Waiver, make_waiver
from harness.trial.spec import Mode


class Budget(NamedTuple):
    """What may be added to metrics since the commit ``since``, by metric."""

    since: str
    allowed: Mapping[str, Waiver]

    @property
    def modes(self) -> list[Mode]:
        """Those that count the metrics."""
        wanted = {METRICS[name].mode for name in self.allowed}
        return [mode for mode in EXACT_MODES if mode in wanted]


class Growth(NamedTuple):
    """What was counted of the commit that a budget begins with, laid out in ``tree``."""

    budget: Budget
    tree: Tree
    counted: Trials

    def of(self, cell: Cell, metric: Metric) -> tuple[float, float] | None:
        """Of a cell: what the metric was, and how much may be added; None without a budget."""
        waiver = self.budget.allowed.get(metric.name)
        if waiver is None:
            return None
        then = self.counted.counted_value(replace(cell, release=self.tree.folder), metric)
        return None if then is None else (then, waiver.amount(then))

    def untold(self, cell: Cell) -> list[str]:
        """Metrics with a budget of which that commit gave no count."""
        return [name for name in self.budget.allowed if self.of(cell, METRICS[name]) is None]


def read_budget(repo: Path, head: str, package: str) -> Budget | None:
    """What HEAD's file, or the work tree's, says. Raises ValueError where it cannot be read."""
    with checkout(repo) as git:
        ours = commit_with(git, head, package)
        said = read_accepts(git, ours, is_work_tree=head == WORK_TREE).budget
        if said is None:
            return None
        where = f"{ACCEPTS_FILE}, budget"
        if OUTPUTS in said.most:
            raise ValueError(f"{where}: outputs do not grow; leave them out")
        try:
            commit_with(git, said.since, package)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None
    allowed = {
        name: make_waiver(name, most, "", ACCEPTS_FILE, said.since, where)
        for name, most in said.most.items()
    }
    return Budget(said.since, allowed)

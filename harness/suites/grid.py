"""What the suites replay, and the cell that a tuple of parameters stands for."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import NamedTuple

import msgspec

from harness.axes import Cell
from harness.experiment.grid import cross
from harness.metrics import METRICS, Metric
from workloads import catalog
from workloads.recipe.arrivals import parse_arrivals
from workloads.recipe.lengths import parse_lengths
from workloads.schedule import Schedule
from workloads.workload import Workload

SEED = 0
"""Of every schedule and every round: the same for all commits."""

DECODE, CHURN = "opt125m-48-200", "churn-cut"

HANDOFFS = (
    "list_of_lists/per_request",
    "list_of_arrays/per_request",
    "list_of_arrays/columnar",
    "flat_arrays/per_request",
    "flat_arrays/columnar",
)
"""Representation and delivery as one parameter: a list has no columns, and two would have holes."""

Parameters = Mapping[str, tuple[str, ...]]
GridPoint = tuple[str, ...]
"""A value for each parameter, in order."""


class Tracked(NamedTuple):
    """A metric and the parameters that it is tracked over; ``fixed`` axes are no parameter."""

    metric: Metric
    parameters: Parameters
    fixed: Mapping[str, str]

    def points(self) -> list[GridPoint]:
        """Every tuple of parameters, in asv's order."""
        return list(product(*self.parameters.values()))

    def cell(self, point: GridPoint) -> Cell:
        """What is measured there, as the engine completes it; no commit's in particular."""
        axes = dict(self.fixed) | dict(zip(self.parameters, point, strict=True))
        axes["representation"], axes["delivery"] = axes.pop("handoff").split("/")
        lists: dict[str, Sequence[str | int]] = {axis: [value] for axis, value in axes.items()}
        workload = workloads()[axes["workload"]]
        realised = {workload.name: schedule(workload.name)}
        return cross(lists, realised, {workload.name: workload.model}).cells[0]


def tracked(metric: str, fixed: Mapping[str, str], **parameters: tuple[str, ...]) -> Tracked:
    """A metric of the table, over these parameters."""
    return Tracked(METRICS[metric], parameters, fixed)


def workloads() -> dict[str, Workload]:
    """The decode of a full batch, and requests that come and go, cut to some 230 steps."""
    churn = msgspec.structs.replace(
        catalog.load_workload("churn"),
        name=CHURN,
        num_requests=2048,
        prompt_lens=parse_lengths("uniform:16:64"),
        output_lens=parse_lengths("uniform:16:128"),
        arrivals=parse_arrivals("closed_loop:1024"),
    )
    return {DECODE: catalog.load_workload(DECODE), CHURN: churn}


def schedule(workload: str) -> Schedule:
    """A workload realised, the same in any process."""
    return workloads()[workload].realise(SEED)

"""Loads as one side of a comparison: several of one schedule are the rounds of one experiment."""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import msgspec
import numpy as np

from harness.experiment.request_slices import with_slices
from harness.experiment.result import ExperimentResult
from harness.experiment.same_origin import machine_differences
from harness.experiment.store import read_rows

_DECIDE = ["request_throughput", "ttft_mean", "tpot_mean"]


def one_side(loads: Sequence[ExperimentResult], folders: Sequence[Path]) -> ExperimentResult:
    """One experiment of a cell: a sample a load, in their order, or of a single one its slices.

    Raises ValueError for an invalid load, or for loads that are not repeats of one another;
    StoreError where rows cannot be read.
    """
    known = [_comparable(load, folder) for load, folder in zip(loads, folders, strict=True)]
    first = known[0]
    if len(known) == 1:
        return with_slices(first, folders[0])
    for other in known[1:]:
        differing = [*machine_differences(first.machine, other.machine)]
        differing += [name for name, value in _what(first).items() if value != _what(other)[name]]
        if differing:
            raise ValueError(
                f"{first.name} and {other.name} are no repeats of one load, for they differ in: "
                f"{'; '.join(differing)}; join only runs of one command on one machine"
            )
    metrics = {
        name: msgspec.structs.replace(
            first.cells[0].metrics[name],
            samples=[load.cells[0].metrics[name].samples[0] for load in known],
        )
        for name in _DECIDE
    }
    cell = msgspec.structs.replace(first.cells[0], samples=len(known), metrics=metrics)
    name = f"{first.name} to {known[-1].name}"
    return msgspec.structs.replace(first, name=name, cells=[cell])


def _comparable(load: ExperimentResult, folder: Path) -> ExperimentResult:
    """With what decides over HTTP. A server may choose other tokens each time: work is the same
    where there are as many.
    """
    if len(load.cells) != 1:
        raise ValueError(
            f"{load.name} has no valid run: gcbench report {load.name} says why; measure again"
        )
    (path,) = (folder / "rows").glob("*-requests.parquet")
    lengths = read_rows(path)["num_tokens"].astype(np.int64)
    cell = msgspec.structs.replace(
        load.cells[0], tokens_sha256=[sha256(lengths.tobytes()).hexdigest()]
    )
    return msgspec.structs.replace(load, cells=[cell], decide=_DECIDE)


def _what(load: ExperimentResult) -> dict[str, object]:
    (cell,), (workload,) = load.cells, load.workloads
    return {
        "options": cell.axes,
        "workload": workload.hash,
        "numbers of tokens": cell.tokens_sha256,
    }

"""Raw trials as pandas frames: a row for each metric of each trial, and one for each failure.

`RunStore.load_trials` sets a file aside that it cannot read; this reader leaves all as it is.
"""

from collections.abc import Iterator
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pandas as pd

from harness.axes import Cell
from harness.experiment.store import read_trial
from harness.files import StoreError
from harness.metrics import METRICS, Metric
from harness.tracking.folders import json_files
from harness.trial.spec import TrialFailure, TrialResult

_FIELDS = Cell.__struct_fields__
PLACE = ("experiment", "round", "place", "mode", "seed", *_FIELDS)
TRIAL_COLUMNS = (*PLACE, "metric", "value", "unit", "direction", "kind", "code_commit", "invalid")
FAILURE_COLUMNS = (*PLACE, "kind", "reason")

TrialRow = tuple[Any, ...]


class RawTrials(NamedTuple):
    """Rows in the order of `TRIAL_COLUMNS` and of `FAILURE_COLUMNS`."""

    trials: list[TrialRow]
    failures: list[TrialRow]


def read_trials(experiments: list[Path], problems: list[str]) -> RawTrials:
    """All trials of experiments' folders; a sentence in ``problems`` for what cannot be read."""
    read = RawTrials([], [])
    for folder in experiments:
        for path in json_files(folder / "trials", problems):
            try:
                key, outcome = read_trial(path)
            except StoreError as problem:
                problems.append(f"{problem}; left out: resume its experiment or remove it")
                continue
            point = msgspec.structs.astuple(outcome.cell)
            place = (folder.name, key.round, key.index, outcome.mode, outcome.seed, *point)
            if isinstance(outcome, TrialFailure):
                read.failures.append((*place, outcome.kind, outcome.reason))
            else:
                read.trials.extend(_metrics(place, outcome))
    return read


def trials_frame(rows: list[TrialRow]) -> pd.DataFrame:
    """One row for each metric of each trial; what a trial could not give is NaN."""
    return _frame(rows, TRIAL_COLUMNS)


def failures_frame(rows: list[TrialRow]) -> pd.DataFrame:
    """One row for each trial without a result, and why."""
    return _frame(rows, FAILURE_COLUMNS)


def _frame(rows: list[TrialRow], columns: tuple[str, ...]) -> pd.DataFrame:
    numbers = {
        name for name, value in msgspec.structs.asdict(Cell()).items() if isinstance(value, int)
    } | {"round", "place", "seed"}
    kinds: dict[str, Any] = {"value": "float64", "reason": None, **dict.fromkeys(numbers, "int64")}
    values = zip(*rows, strict=True) if rows else repeat(())
    return pd.DataFrame(
        {
            name: pd.Series(list(of), dtype=kinds.get(name, "category"))
            for name, of in zip(columns, values, strict=False)
        }
    )


def _metrics(place: TrialRow, result: TrialResult) -> Iterator[TrialRow]:
    for name, value in result.metrics.items():
        metric = METRICS.get(name) or Metric(name, "", "neither", "timing", "", "", "")
        yield (
            *place,
            name,
            value,
            metric.unit,
            metric.direction,
            metric.kind,
            result.code_commit,
            result.invalid,
        )

"""A timed trial's rows, left raw for the parent, which has the time to make Parquet."""

from pathlib import Path
from typing import Any

import numpy as np

from harness.collector.probe import Events
from harness.files import writing
from harness.trial.observation import Observation
from harness.trial.recorder import STEP_COLUMNS
from workloads.files.whole_file import replacing


def write_trial_rows(path: str, seen: Observation) -> None:
    """Write requests, steps and collections as arrays to ``path``, or nowhere where it is ""."""
    if not path:
        return
    tables = {
        "requests": seen.requests._asdict(),
        "steps": dict(zip(STEP_COLUMNS, seen.steps.T, strict=True)),
        "collections": _joined(seen.events),
    }
    columns = {
        f"{table}.{name}": column for table, rows in tables.items() for name, column in rows.items()
    }
    with writing(Path(path)), replacing(Path(path)) as temporary, temporary.open("wb") as file:
        np.savez(file, **columns)


def _joined(events: list[Events]) -> dict[str, Any]:
    """All processes' collections as columns; ``process`` is a process's place in the result."""
    places = [np.full(len(each.generation), i, np.int8) for i, each in enumerate(events)]
    columns = {
        name: np.concatenate([getattr(each, name) for each in events]) for name in Events._fields
    }
    return columns | {"process": np.concatenate(places)}

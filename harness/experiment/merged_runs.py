"""The shards of an experiment as one, stored beside them and summed up."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from harness.experiment.merge import merge_shards
from harness.experiment.result import ExperimentResult
from harness.experiment.run import replayed
from harness.experiment.store import RunStore, new_name
from harness.experiment.summarise import summarise
from harness.files import StoreError
from harness.machine.describe import Machine
from harness.result.result import keep_result
from harness.trial.spec import TrialResult


class MergedRuns(NamedTuple):
    """``missing``: how many trials of the plan no shard has."""

    result: ExperimentResult
    folder: Path
    missing: int


def merge_runs(folders: Sequence[Path], root: Path, command: str) -> MergedRuns:
    """Make one experiment of them in a new folder below ``root``; nothing is measured.

    Raises ValueError as `merge`, and where a folder is given twice; StoreError.
    """
    if len(set(folders)) < len(folders):
        raise ValueError("a run is given twice; give each shard once")
    name = new_name(root, f"{folders[0].name.split('-', 3)[-1]}-merged")
    store = RunStore(root, name)
    try:
        merged = merge_shards(folders, store)
    except (ValueError, StoreError):
        if not any(store.folder.iterdir()):
            store.folder.rmdir()  # nothing of it is there yet
        raise
    notes = list(merged.notes)
    if merged.missing:
        notes.append(f"{merged.missing} trials are missing: not all shards were given, or whole.")
    results = (each for each in merged.outcomes.values() if isinstance(each, TrialResult))
    machine = next((each.machine for each in results if each.machine), Machine())
    result = summarise(
        merged.plan,
        merged.outcomes,
        machine=machine,
        workloads=replayed(merged.schedules),
        command=command,
        notes=notes,
    )
    result = msgspec.structs.replace(result, surroundings=merged.surroundings)
    keep_result(store.folder.parent, result)
    return MergedRuns(result, store.folder, merged.missing)

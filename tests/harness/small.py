"""Schedules, engines and made-up results, as small as a test can do with."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from processes import HANG_SECONDS

from engines.builtin.engine import Engine
from harness.axes import Cell
from harness.collector.result import GcState, ProcessResult
from harness.experiment.executor import Executor, TrialOutcome
from harness.experiment.grid import baselines
from harness.experiment.plan import Plan, default_decider
from harness.experiment.result import ExperimentResult
from harness.experiment.store import TrialKey
from harness.experiment.summarise import summarise
from harness.machine.describe import Machine
from harness.trial.engine_config import engine_config
from harness.trial.spec import Trial, TrialFailure, TrialResult
from workloads.schedule import Schedule

TRIAL_SECONDS = HANG_SECONDS
"""For a trial that must answer, on however slow a machine."""

CELL = Cell(workload="small", device="null", representation="list_of_lists", batch_size=8)

STATE = GcState(enabled=True, thresholds=(700, 10, 10), freeze_count=0, tracked_objects=1000)


def schedule(output_lens: Sequence[int], **changes: Any) -> Schedule:
    """Requests of 3 prompt tokens that are all there from the start, one token a step."""
    count = len(output_lens)
    fields: dict[str, Any] = {
        "name": "small",
        "prompt_lens": np.full(count, 3),
        "output_lens": np.array(output_lens),
        "arrival_seconds": np.zeros(count),
        "max_concurrency": 0,
        "num_accepted": np.array([1]),
        "token_seed": 7,
        "stop_token_ids": (),
        "retain": "step",
    }
    return Schedule(**(fields | changes))


def engine(of: Schedule, cell: Cell = CELL) -> Engine:
    """The built-in engine, sized for a schedule."""
    return Engine(engine_config(cell, of))


def trial(of: Schedule, folder: Path, cell: Cell = CELL, **fields: Any) -> Trial:
    """A trial of a schedule that is saved in a folder."""
    path = folder / f"{of.sha256[:12]}.npz"
    of.save(path)
    return Trial(cell=cell, schedule_path=str(path), schedule_sha256=of.sha256, **fields)


def process(collections: tuple[int, int, int] = (0, 0, 0)) -> ProcessResult:
    """What a process of a trial might have answered."""
    return ProcessResult(
        role="engine",
        policy="default",
        state=STATE,
        collections=collections,
        collected=(0, 0, 0),
        pause_seconds=(0.0, 0.0, 0.0),
        max_pause_seconds=0.0,
        full_pass_seconds=0.5,
    )


def answer(
    to: Trial,
    metrics: dict[str, float | None],
    invalid: str = "",
    tokens_sha256: str = "same",
    text_sha256: str = "",
) -> TrialResult:
    """What a trial might have answered."""
    return TrialResult(
        cell=to.cell,
        mode=to.mode,
        seed=to.seed,
        metrics=metrics,
        processes=[process()],
        tokens_sha256=tokens_sha256,
        text_sha256=text_sha256,
        finish_sha256="",
        script="of the tests",
        interpreter="",
        code_root="",
        code_commit="",
        wall_seconds=0.0,
        invalid=invalid,
    )


@dataclass
class Calls(Executor):
    """Runs trials by calling a function, ``batch`` at a time."""

    measure: Callable[[Sequence[Trial]], Iterable[TrialOutcome]]
    batch: int = 2

    def run(self, trials: Sequence[Trial]) -> Iterable[TrialOutcome]:
        return self.measure(trials)

    def batch_size(self, cells: Iterable[Cell]) -> int:
        return self.batch


class MemoryStore:
    """What a `RunStore` does for `harness.experiment.rounds.Rounds`, with no disk under it."""

    def __init__(self) -> None:
        self.trials: dict[TrialKey, TrialResult | TrialFailure] = {}

    def schedule_path(self, schedule_sha256: str) -> Path:
        """Where the schedule would be."""
        return Path(schedule_sha256)

    def rows_path(self, key: TrialKey) -> Path:
        """Where the rows would be."""
        return Path(str(key))

    def outputs_path(self, key: TrialKey) -> Path:
        """Where the outputs would be."""
        return Path(f"{key}-outputs")

    def keep_rows(self, key: TrialKey) -> None:
        """A made-up trial leaves none."""

    def save_trial(self, key: TrialKey, outcome: TrialResult | TrialFailure) -> None:
        """Keep it, as JSON would bring it back."""
        encoded = msgspec.json.encode(outcome)
        self.trials[key] = msgspec.json.decode(encoded, type=type(outcome))


def plan(cells: list[Cell], **changes: Any) -> Plan:
    """A plan over the cells that counts nothing."""
    fields: dict[str, Any] = {
        "name": "small",
        "cells": cells,
        "schedules": dict.fromkeys((cell.workload for cell in cells), "hash"),
        "baselines": baselines(cells, {}),
        "decide": default_decider(cells),
        "rounds": 7,
        "seed": 0,
        "tolerance": 0.02,
        "extra_modes": [],
    }
    return Plan(**(fields | changes))


def summary(of: Plan, outcomes: Mapping[TrialKey, TrialResult | TrialFailure]) -> ExperimentResult:
    """What a plan's trials say, on no machine in particular."""
    return summarise(of, outcomes, machine=Machine(), workloads=[], command="gcbench compare")

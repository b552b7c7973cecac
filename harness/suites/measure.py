"""Runs cells with the installed commit's engines, by the road of every experiment."""

import os
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from harness.axes import Cell
from harness.experiment.grid import baselines
from harness.experiment.local_executor import isolate
from harness.experiment.plan import Plan
from harness.experiment.result import ExperimentResult
from harness.experiment.rounds import Outcomes, Precision, Rounds, prepared_at_once
from harness.experiment.store import RunStore, new_name
from harness.experiment.summarise import summarise
from harness.machine.describe import describe
from harness.suites.commit import installed_tree
from harness.suites.grid import SEED, schedule
from harness.trial.spec import Mode

_ROOT = Path(__file__).resolve().parents[2]
_TRIAL_TIMEOUT_SECONDS = 300.0


class Measured(NamedTuple):
    """What the cells gave; ``store`` has the raw trials for as long as asv's folder lives."""

    result: ExperimentResult
    outcomes: Outcomes
    store: RunStore


def measure(
    label: str, cells: Iterable[Cell], *, modes: Sequence[Mode] = (), rounds: int = 0
) -> Measured:
    """Count in ``modes``, then time in ``rounds``; any failure is one of the outcomes.

    Raw trials go to the working folder, or to the one that GCBENCH_RUNS names. Raises ValueError
    where no commit is installed, StoreError where the folder cannot be written.
    """
    tree = str(installed_tree())
    chosen = [msgspec.structs.replace(cell, release=tree) for cell in dict.fromkeys(cells)]
    root = Path(_ROOT, runs) if (runs := os.environ.get("GCBENCH_RUNS")) else Path.cwd() / "runs"
    store = RunStore(root, new_name(root, f"asv-{label}"))
    store.create()
    replayed = {name: schedule(name) for name in {cell.workload for cell in chosen}}
    for each in replayed.values():
        each.save(store.schedule_path(each.sha256))
    plan = Plan(
        name=store.name,
        cells=chosen,
        schedules={name: each.sha256 for name, each in replayed.items()},
        baselines=baselines(chosen, {}),
        decide=[],  # asv compares commits; between the cells of one it wants no verdict
        rounds=rounds,
        seed=SEED,
        tolerance=0.02,
        extra_modes=list(modes),
    )
    store.adopt_plan(plan)
    trials = Rounds(
        plan,
        store,
        partial(isolate, timeout_seconds=_TRIAL_TIMEOUT_SECONDS),
        lambda turn, outcome: None,
        batch=prepared_at_once(chosen),
    )
    described = partial(
        summarise,
        plan,
        machine=describe(),
        workload={"name": ", ".join(replayed), "hash": ", ".join(plan.schedules.values())},
        command="asv run",
    )
    trials.run(described, Precision(0.0, 0.0))
    result = described(trials.outcomes)
    store.save_experiment(result)
    return Measured(result, trials.outcomes, store)

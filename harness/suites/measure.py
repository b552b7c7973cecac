"""Runs cells with the installed commit's engines, by the road of every experiment."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from harness.axes import Cell
from harness.experiment.grid import baselines
from harness.experiment.local_executor import LocalExecutor
from harness.experiment.plan import Plan
from harness.experiment.result import ExperimentResult
from harness.experiment.run import PlanRun, Runner
from harness.suites.commit import installed_tree
from harness.suites.grid import SEED, schedule
from harness.trial.spec import Mode

_ROOT = Path(__file__).resolve().parents[2]
_TRIAL_TIMEOUT_SECONDS = 300.0


class SuiteRun(NamedTuple):
    """What the cells gave; the raw trials are there for as long as asv's folder lives."""

    result: ExperimentResult
    ran: PlanRun


def measure_suite(
    label: str, cells: Iterable[Cell], *, modes: Sequence[Mode] = (), rounds: int = 0
) -> SuiteRun:
    """Count in ``modes``, then time in ``rounds``; any failure is one of the outcomes.

    Raw trials go to the working folder, or to the one that GCBENCH_RUNS names. Raises ValueError
    where no commit is installed, StoreError where the folder cannot be written.
    """
    tree = str(installed_tree())
    chosen = [msgspec.structs.replace(cell, release=tree) for cell in dict.fromkeys(cells)]
    root = Path(_ROOT, runs) if (runs := os.environ.get("GCBENCH_RUNS")) else Path.cwd() / "runs"
    replayed = {name: schedule(name) for name in {cell.workload for cell in chosen}}
    runner = Runner(root, replayed, LocalExecutor(_TRIAL_TIMEOUT_SECONDS), SEED)
    plan = Plan(
        name=runner.new_name(f"asv-{label}"),
        cells=chosen,
        schedules=runner.schedule_hashes,
        baselines=baselines(chosen, {}),
        decide=[],  # asv compares commits; between the cells of one it wants no verdict
        rounds=rounds,
        seed=SEED,
        tolerance=0.02,
        extra_modes=list(modes),
    )
    ran = runner.run(plan)
    if ran.is_interrupted:
        raise KeyboardInterrupt
    return SuiteRun(runner.summarise(ran, command="asv run"), ran)

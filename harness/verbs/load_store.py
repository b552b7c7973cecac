"""A run under load kept as any experiment's trial: the same folder, schemas and tables."""

from pathlib import Path

import msgspec
import numpy as np

from harness.experiment.plan import Plan
from harness.experiment.run import INTERRUPTED_NOTE
from harness.experiment.store import RunStore, new_name, trial_key
from harness.experiment.summarise import summarise
from harness.files import indented, write_whole
from harness.load.attribution import SlowWaits
from harness.load.measure import requests_of
from harness.load.observed import Observed
from harness.load.result import LoadResult
from harness.machine.describe import describe
from harness.machine.interrupts import held_interrupts
from harness.result.result import RESULT_FILE, ReplayedWorkload
from harness.trial.recorder import STEP_COLUMNS


def store_run(
    root: Path, observed: Observed, result: LoadResult, slow: SlowWaits | None, command: str
) -> LoadResult:
    """Keep it in a new folder below ``root``; the result as it is kept. Raises StoreError.

    A run of one trial of one cell. An invalid one has no cell in the summary, as with any trial.
    """
    trial, schedule = result.trial, observed.schedule
    cell = trial.cell
    store = RunStore(root, new_name(root, f"load-{cell.workload}"))
    key = trial_key(1, 0, cell, "timing")
    plan = Plan(
        name=store.name,
        cells=[cell],
        schedules={cell.workload: schedule.sha256},
        baselines=[0],
        decide=["request_throughput"],
        rounds=1,
        seed=trial.seed,
        tolerance=0.02,
        extra_modes=[],
    )
    replayed = ReplayedWorkload(
        name=cell.workload,
        hash=schedule.sha256,
        num_requests=schedule.num_requests,
        total_output_tokens=schedule.total_output_tokens,
    )
    with held_interrupts(), store.writer():
        store.adopt_plan(plan)
        store.mark_incomplete()
        schedule.save(store.schedule_path(schedule.sha256))
        _leave_rows(store.rows_path(key), observed, slow)
        store.keep_rows(key)
        store.save_trial(key, trial)
        notes = [INTERRUPTED_NOTE] * observed.is_interrupted + result.notes
        summary = summarise(
            plan,
            {key: trial},
            machine=describe(),
            workloads=[replayed],
            command=command,
            notes=notes,
        )
        summary = msgspec.structs.replace(summary, is_complete=result.is_complete)
        result = msgspec.structs.replace(
            result,
            name=store.name,
            command=command,
            machine=summary.machine,
            workloads=summary.workloads,
            experiment=summary,
        )
        write_whole(store.folder / RESULT_FILE, indented(result))
        if not observed.is_interrupted:
            store.mark_complete()
    return result


def _leave_rows(path: Path, observed: Observed, slow: SlowWaits | None) -> None:
    """Arrays for `RunStore.keep_rows`: an in-process trial's tables, deliveries, slow waits."""
    responses = observed.responses
    whose = np.repeat(np.arange(len(responses.outcome)), responses.num_deliveries)
    columns = {f"requests.{name}": each for name, each in requests_of(observed)._asdict().items()}
    columns["requests.outcome"] = responses.outcome
    columns |= {f"steps.{name}": np.zeros(0, np.int64) for name in STEP_COLUMNS}
    columns |= {"deliveries.request": whose, "deliveries.delivered_ns": responses.delivered_ns}
    if slow is not None:
        columns |= {f"slow_waits.{name}": each for name, each in slow.waits._asdict().items()}
        columns["slow_waits.cause"] = slow.cause
    with path.open("wb") as file:
        np.savez(file, **columns)

"""Several runs of one plan's shards put together, by copying their files."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import msgspec

from harness.experiment.executor import TrialOutcome
from harness.experiment.grid import group_key
from harness.experiment.plan import Plan, exact_turns, timing_round
from harness.experiment.rounds import Outcomes
from harness.experiment.same_origin import Launched, launched, origin_differences
from harness.experiment.store import RunStore, TrialKey, load_experiment
from harness.files import StoreError, write_whole
from harness.machine.other_work import Surroundings
from harness.trial.spec import TrialResult
from workloads.files.regular_file import read_regular
from workloads.schedule import Schedule

_MOST_BYTES = 1 << 30
"""Of a file that is copied."""

_BlockName = tuple[int, tuple[str, ...]]


class Merged(NamedTuple):
    """An experiment made of several. ``missing``: how many trials of its plan none of them has;
    ``surroundings``: those of the busiest.
    """

    plan: Plan
    outcomes: Outcomes
    schedules: dict[str, Schedule]
    missing: int
    surroundings: Surroundings | None
    notes: list[str]


class _Run(NamedTuple):
    store: RunStore
    plan: Plan
    outcomes: Outcomes


def merge_shards(folders: Sequence[Path], into: RunStore) -> Merged:
    """Copy the trials of these runs into one that is new.

    Raises ValueError where they are not parts of one experiment: of another plan, workload,
    machine, interpreter, code or dependency, or with a block in common. Raises StoreError.
    """
    runs = [_load(folder) for folder in folders]
    first = runs[0]
    for other in runs[1:]:
        _refuse_other_plan(first, other)
    _refuse_others(runs)
    _refuse_overlap(runs)
    plan = msgspec.structs.replace(first.plan, name=into.name)
    with into.writer():
        into.adopt_plan(plan)
        into.mark_incomplete()
        for run in runs:
            _copy(run.store.folder, into.folder)
        outcomes = dict(chain.from_iterable(run.outcomes.items() for run in runs))
        missing = sum(key not in outcomes for key in _keys(plan))
        if not missing:
            into.mark_complete()
    schedules = {
        name: Schedule.load(into.schedule_path(sha256)) for name, sha256 in plan.schedules.items()
    }
    warnings = [warning for run in runs for warning in run.store.warnings]
    return Merged(plan, outcomes, schedules, missing, _busiest(folders), warnings)


def _busiest(folders: Sequence[Path]) -> Surroundings | None:
    known = []
    for folder in folders:
        with suppress(StoreError):  # a shard that was ended early has no summary
            known.append(load_experiment(folder).surroundings)
    return max(
        filter(None, known),
        key=lambda each: (each.is_busy, each.during.others / each.during.cores),
        default=None,
    )


def _load(folder: Path) -> _Run:
    store = RunStore(folder.parent, folder.name)
    return _Run(store, store.load_plan(Plan), store.load_trials())


def _refuse_other_plan(first: _Run, other: _Run) -> None:
    for field in Plan.__struct_fields__:
        if field != "name" and getattr(first.plan, field) != getattr(other.plan, field):
            what = "workload" if field == "schedules" else field.replace("_", " ")
            raise ValueError(
                f"{first.store.name} and {other.store.name} cannot be merged: {what} of their "
                "plans differ; run each shard with the same options and the same gcbench"
            )


def _refuse_others(runs: Sequence[_Run]) -> None:
    seen: dict[Launched, tuple[str, TrialResult]] = {}
    for run in runs:
        for result in _results(run.outcomes.values()):
            seen.setdefault(launched(result.cell), (run.store.name, result))
            for name, earlier in seen.values():
                if found := origin_differences(earlier, result, by_commit=False):
                    raise ValueError(
                        f"{name} and {run.store.name} cannot be merged: {'; '.join(found)}; "
                        "measure all shards with one code and interpreter on equal machines"
                    )


def _refuse_overlap(runs: Sequence[_Run]) -> None:
    holder: dict[_BlockName, str] = {}
    for run in runs:
        blocks = {_block(key, outcome) for key, outcome in run.outcomes.items()}
        for block in sorted(blocks):
            if block in holder:
                what = f"round {block[0]}" if block[0] else "the trials that count"
                raise ValueError(
                    f"{holder[block]} and {run.store.name} cannot be merged: both hold {what} of "
                    f"workload {block[1][0]}; give each shard once"
                )
        holder |= dict.fromkeys(blocks, run.store.name)


def _block(key: TrialKey, outcome: TrialOutcome) -> _BlockName:
    return key.round, group_key(outcome.cell)


def _results(outcomes: Iterable[TrialOutcome]) -> Iterable[TrialResult]:
    return (each for each in outcomes if isinstance(each, TrialResult))


def _keys(plan: Plan) -> Iterable[TrialKey]:
    rounds = (timing_round(plan, number) for number in range(1, plan.rounds + 1))
    for turn in chain(exact_turns(plan), *rounds):
        yield turn.key


def _copy(source: Path, into: Path) -> None:
    for pattern in ("trials/*.json", "rows/*.parquet", "schedule-*.npz"):
        for path in sorted(source.glob(pattern)):
            write_whole(into / path.relative_to(source), read_regular(path, _MOST_BYTES))

"""An engine that stands as its trial asked for it, and what forks have before they build theirs."""

from contextlib import suppress
from importlib import import_module
from typing import NamedTuple

from engines.protocol import EngineClass, Setting, StepEngine
from engines.registry import ENGINES
from harness.collector import heap
from harness.collector.callers import CollectorCall, SettingLog
from harness.running.stack_dump import dump_on_signal
from harness.trial.beside import num_threads
from harness.trial.engine_config import engine_config
from harness.trial.modes import MODES
from harness.trial.spec import Mode, Trial, TrialBatch
from workloads.schedule import Schedule


class ReadyEngine(NamedTuple):
    """An engine that stands, for trials that differ in mode, collector or heap alone."""

    schedule: Schedule
    engine: StepEngine
    state: dict[str, Setting]
    settings: list[CollectorCall]
    """Who has set the collector while it was built."""
    left_behind: int = 0
    """Threads of the process that built it, which a fork of that does not have."""


def get_ready(trial: Trial) -> ReadyEngine:
    """Build the trial's engine. Raises ValueError where that cannot be as asked."""
    schedule = _schedule(trial)
    engine_class: EngineClass = ENGINES.load(trial.cell.engine)
    log = SettingLog()
    log.start(are_carried_out=True)
    try:
        engine = engine_class(engine_config(trial.cell, schedule, _longest(trial.mode)))
    finally:
        settings = log.stop()
    try:
        engine.collective_rpc(dump_on_signal)
        return ReadyEngine(schedule, engine, read_back(engine, trial.cell.engine), settings)
    except BaseException:
        engine.shutdown()
        raise


def read_back(engine: StepEngine, name: str) -> dict[str, Setting]:
    """The switches of an engine as they are in force.

    Raises ValueError where it does not run as it was asked to.
    """
    state = engine.read_back()
    if differences := state.differences():
        raise ValueError(
            f"engine {name} does not run as asked: {', '.join(differences)}; this release or "
            "its platform overrides what it is given, so leave that setting out"
        )
    return state.found


def _longest(mode: Mode) -> int:
    """Tokens of a request that a mode asks for beside those of its schedule."""
    if not MODES[mode].cost_model:
        return 0
    from harness.trial.cost_grid import MOST_TOKENS  # no part of other trials' heap

    return MOST_TOKENS


def _schedule(trial: Trial) -> Schedule:
    schedule = Schedule.load(trial.schedule_path)
    if schedule.sha256 != trial.schedule_sha256:
        raise ValueError(f"{trial.schedule_path} is not the schedule that was asked for")
    return schedule


_SHARED = 0.98
"""Share of a heap that trials have in common; the rest each builds beside its own engine."""


def prepare_forks(asked: TrialBatch) -> ReadyEngine | None:
    """Make what trials have in common, and no more; the engine, where that is it.

    What a fork counts must not hang on which others there are: the full passes of a heap come
    by its size.
    """
    if asked.shared == "engine":
        return get_ready(asked.trials[0])._replace(left_behind=num_threads())
    ENGINES.load(asked.trials[0].cell.engine)
    if asked.preload:
        with suppress(ModuleNotFoundError):  # another commit's engines may have it elsewhere
            import_module(asked.preload)
    if asked.shared == "heap":
        least = min(trial.cell.heap_objects for trial in asked.trials)
        heap.top_up("", int(_SHARED * least), asked.trials[0].seed)
        heap.spare_until_top_up()
    return None

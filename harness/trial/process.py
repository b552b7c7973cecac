"""The inside of a trial: a process of its own, one JSON document in, one out."""

import os
import resource
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from engines.protocol import (
    EngineClass,
    EngineConfig,
    EngineDeadError,
    EngineProcess,
    HasStreams,
    MakesText,
    ReadsBack,
    Setting,
    WatchedEngine,
)
from engines.registry import ENGINES
from harness.axes import Cell
from harness.collector import heap, window
from harness.collector.callers import CollectorCall, SettingLog
from harness.collector.on_wait import busy_hook
from harness.collector.probe import Events
from harness.collector.result import ProcessResult
from harness.files import StoreError, writing
from harness.trial.answers import Answers
from harness.trial.arrivals import comes_by_itself
from harness.trial.client import Client, Streams, warm_up
from harness.trial.clock import PausedClock, RealClock, VirtualClock
from harness.trial.compute_metrics import compute_metrics
from harness.trial.engine_config import engine_config
from harness.trial.engine_counters import EngineCounters
from harness.trial.forks import in_forks, in_talking_forks
from harness.trial.modes import MODES
from harness.trial.observation import Observation
from harness.trial.phase_pauses import phase_pauses
from harness.trial.recorder import STEP_COLUMNS
from harness.trial.request_costs import Cost, cost_metrics, request_costs
from harness.trial.run_queue import RunQueue
from harness.trial.sender import Sender
from harness.trial.spec import PAUSED, READY, REFUSED, Trial, TrialResult, Trials
from harness.trial.stack_dump import dump_on_signal
from harness.trial.step_costs import StepCosts
from harness.trial.watch import Extent, Watch
from workloads.schedule import Schedule
from workloads.whole_file import replacing


def prepare(process: EngineProcess, heap_objects: int, seed: int) -> None:
    """Bring a process of the engine to its size before anything is measured in it."""
    heap.top_up(process.role, heap_objects, seed)


def open_window(
    process: EngineProcess, policy_text: str, batch_size: int, probe: bool, phase_seed: int | None
) -> str:
    """Set the collector of a process for the window; why it must be refused, or ""."""
    process.while_device_busy = busy_hook(process.role, policy_text)
    return window.open_window(process.role, policy_text, batch_size, probe, phase_seed)


def stop_counting(process: EngineProcess) -> None:
    """Count nothing more in a process, whose window stays open."""
    window.stop_counting(process.role)


def close_window(process: EngineProcess) -> ProcessResult:
    """What the collector did in a process while the window was open."""
    process.while_device_busy = None
    result = window.close_window(process.role)
    if refusal := window.window_refusal(process.role):
        raise ValueError(refusal)
    return result


def window_events(process: EngineProcess) -> Events:
    """The collections that the probe of a process saw in its last window."""
    return window.window_events(process.role)


def read_back(engine: object, name: str) -> dict[str, Setting]:
    """The switches of an engine as they are in force; nothing of one that does not say.

    Raises ValueError where it does not run as it was asked to.
    """
    if not isinstance(engine, ReadsBack):
        return {}
    state = engine.read_back()
    if differences := state.differences():
        raise ValueError(
            f"engine {name} does not run as asked: {', '.join(differences)}; this release or "
            "its platform overrides what it is given, so leave that setting out"
        )
    return state.found


def _schedule(trial: Trial) -> Schedule:
    schedule = Schedule.load(trial.schedule_path)
    if schedule.sha256 != trial.schedule_sha256:
        raise ValueError(f"{trial.schedule_path} is not the schedule that was asked for")
    return schedule


def _readers(
    engine: WatchedEngine, cell: Cell
) -> tuple[Streams | None, Callable[[int], str] | None]:
    """Where outputs and texts are read; an engine that has none of them refuses the axis."""
    has_streams, has_text = cell.request_streams != "none", cell.detokenizer != "none"
    return (
        engine.request_stream if has_streams and isinstance(engine, HasStreams) else None,
        engine.output_text if has_text and isinstance(engine, MakesText) else None,
    )


def _open_windows(engine: WatchedEngine, trial: Trial) -> None:
    """In each of its processes. Raises ValueError where a collector is not as asked."""
    cell, mode = trial.cell, MODES[trial.mode]
    opened = (mode.policy or cell.gc, cell.batch_size, mode.probe,
              trial.seed if mode.vary_phase else None)  # fmt: skip
    if refusals := [text for text in engine.collective_rpc(open_window, *opened) if text]:
        raise ValueError(refusals[0])


def _abandon(engine: WatchedEngine, client: Client, watch: Watch) -> None:
    """End what is left unserved; from here on no process counts."""
    # The built-in engine's worker process does not answer while a step is under way. That step is
    # the window's, and the worker is asked for no other.
    with suppress(RuntimeError):
        engine.collective_rpc(stop_counting)
    watch.steps_end()
    client.abandon()


class Ready(NamedTuple):
    """An engine that stands, for trials that differ in mode, collector or heap alone."""

    schedule: Schedule
    config: EngineConfig
    engine: WatchedEngine
    state: dict[str, Setting]
    settings: list[CollectorCall]
    """Who has set the collector while it was built."""


def get_ready(trial: Trial) -> Ready:
    """Build the trial's engine. Raises ValueError where that cannot be as asked."""
    schedule = _schedule(trial)
    engine_class: EngineClass = ENGINES.load(trial.cell.engine)
    log = SettingLog()
    log.start(are_carried_out=True)
    try:
        engine = engine_class(config := engine_config(trial.cell, schedule))
    finally:
        settings = log.stop()
    try:
        engine.collective_rpc(dump_on_signal)
        return Ready(schedule, config, engine, read_back(engine, trial.cell.engine), settings)
    except BaseException:
        engine.shutdown()
        raise


_SHARED = 0.98
"""Share of a heap that trials have in common; the rest each builds beside its own engine."""


def build_shared(trials: Sequence[Trial]) -> None:
    """Import what the trials will, and build what they have of their heaps in common."""
    # One that cannot be built says so in its fork, and others may be.
    with suppress(Exception):
        get_ready(trials[0]).engine.shutdown()
    least = min(trial.cell.heap_objects for trial in trials)
    heap.top_up("", int(_SHARED * least), trials[0].seed)
    heap.spare_until_top_up()


def run_trial(trial: Trial, say_and_wait: Callable[[bytes], None]) -> TrialResult:
    """Run one trial in this interpreter.

    ``say_and_wait`` says that it is prepared, or pauses, and returns when it shall go on.
    Raises ValueError where it cannot be run as asked.
    """
    began = time.perf_counter()
    ready = get_ready(trial)
    return measure(ready, trial, say_and_wait, began)


def measure(
    ready: Ready,
    trial: Trial,
    say_and_wait: Callable[[bytes], None],
    began: float,
    *,
    is_fork: bool = False,
) -> TrialResult:
    """As `run_trial`, on an engine that stands; a fork leaves the end of it to the others."""
    cell, mode = trial.cell, MODES[trial.mode]
    schedule, config, engine, engine_state, settings = ready
    engine_class: EngineClass = ENGINES.load(cell.engine)
    streams, output_text = _readers(engine, cell)
    # Between slices time stands still, and no other process would know.
    is_real_time = not mode.virtual_time and not trial.slice_steps
    sender: Sender | None = None
    # Where an engine has several threads or processes they may take one another's core.
    run_queue = RunQueue(is_told=trial.mode == "timing" and engine_class.is_exact(config))
    try:
        engine.collective_rpc(prepare, cell.heap_objects if mode.fills_heap else 0, trial.seed)
        if is_real_time and comes_by_itself(schedule):
            sender = Sender(schedule.arrival_seconds)
        if not trial.slice_steps:
            say_and_wait(READY)
        full_batch = min(cell.batch_size, schedule.num_requests)
        extent = Extent(full_batch, trial.trace_every, trial.seed, settings)
        watch = mode.watch(engine, extent)
        warm_up(engine, schedule, cell.batch_size, streams=streams, rehearse=mode.rehearse)
        paused = PausedClock()
        real = paused if trial.slice_steps else RealClock()
        clock = VirtualClock() if mode.virtual_time else real
        client = Client(
            engine, watch.step, schedule, clock,
            arrivals=sender, streams=streams,
            output_text=output_text,
            waited_ns=run_queue.waited_ns,
        )  # fmt: skip
        answers = Answers(client)
        _open_windows(engine, trial)
        if trial.slice_steps:  # it waits for its first turn as for any other
            say_and_wait(READY)
        counters = EngineCounters(engine)
        watch.window_opens()
        window_ns = -time.perf_counter_ns()
        with run_queue:
            client.run(
                trial.max_steps,
                trial.slice_steps,
                partial(paused.stop_during, partial(say_and_wait, PAUSED)),
            )
        window_ns += time.perf_counter_ns() - paused.away_ns
        counters.window_closes()
        _abandon(engine, client, watch)
        counters.engine_is_idle(is_whole=not trial.max_steps)
        watch.window_closes(answers.let_go)
        processes: list[ProcessResult] = engine.collective_rpc(close_window)
        events: list[Events] = engine.collective_rpc(window_events)
        per_request = (
            request_costs(engine, schedule, cell.batch_size, streams) if mode.request_costs else {}
        )
    finally:
        if sender is not None:
            sender.close()
        if not is_fork:
            engine.shutdown()
    observation = Observation(
        schedule=schedule,
        requests=client.recorder.requests,
        steps=client.recorder.steps,
        gaps=client.recorder.gaps,
        window_ns=window_ns,
        events=events,
        processes=processes,
        wire_bytes=counters.wire_bytes,
        wire_seconds=counters.wire_seconds,
        scheduler_stats=counters.scheduler_stats,
        device_work=counters.device_work,
        watched=watch.results(client.recorder.num_rows) | cost_metrics(per_request),
        counts_lateness=not trial.slice_steps,
        peak_rss=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    )
    measured = compute_metrics(observation, trial.mode)
    _write_rows(trial.rows_path, observation)
    _leave_the_core()
    # Only now: what is imported before the window is part of the heap that is measured.
    from harness.trial.origin import origin

    return TrialResult(
        cell=cell,
        mode=trial.mode,
        seed=trial.seed,
        metrics=measured.metrics,
        processes=processes,
        tokens_sha256=answers.let_go().tokens,
        text_sha256=answers.let_go().text,
        finish_sha256=answers.let_go().finish,
        lengths_sha256=answers.let_go().lengths,
        is_scripted=engine.is_scripted,
        **origin(engine_class.package),
        wall_seconds=time.perf_counter() - began,
        waited_share=observation.waited_share if run_queue.tells else None,
        step_host_ns=observation.host_ns.tolist() if trial.slice_steps else [],
        steady_state=measured.steady_state,
        delivered=measured.delivered,
        engine_state=engine_state,
        collector_calls=list(watch.calls),
        messages=list(watch.messages),
        stages=watch.stages,
        pauses=phase_pauses(observation),
        costs=_costs(watch, per_request),
        sites=watch.sites,
        young=watch.young,
        invalid=measured.invalid,
        recurs=measured.recurs,
    )


def _costs(watch: Watch, per_request: dict[str, Cost]) -> StepCosts | None:
    if watch.costs is None:
        return None
    functions = {call: cost.by_function() for call, cost in per_request.items()}
    return msgspec.structs.replace(watch.costs, per_request=functions)


_CORES = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
"""Those that this process began with: while trials take turns they are kept on one."""


def _leave_the_core() -> None:
    """Describe the machine as it is for whoever takes no turns."""
    if _CORES is not None:
        os.sched_setaffinity(0, _CORES)


def _write_rows(path: str, seen: Observation) -> None:
    """Leave the rows, if it wants them, to the parent, raw: it has the time to make Parquet."""
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


def _is_heard_by_nobody(word: bytes) -> None:
    """What a fork says: its interpreter has said that all are prepared."""


def main() -> int:
    """Read `Trials` from standard input, get ready, wait to be told, answer a `TrialResult`.

    Of several trials each is run in a fork. A `ForkNews`, a line of JSON, says when one has begun
    and when it has ended.
    """
    dump_on_signal()
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints must not end up in the JSON

    def say_and_wait(word: bytes) -> None:
        answer.write(word)
        answer.flush()
        if not sys.stdin.buffer.readline():  # nobody is there any more to whom it could matter
            sys.exit(REFUSED)

    try:
        asked = msgspec.json.decode(sys.stdin.buffer.readline(), type=Trials)
        trial = asked.trials[0]
        if len(asked.trials) == 1:
            del asked  # nor has a fork it, so that both have the same heap
            result = run_trial(trial, say_and_wait)
        elif asked.channels:
            build_shared(asked.trials)
            index = in_talking_forks(asked.channels, answer)
            if index is None:
                return 0
            trial = asked.trials[index]
            del asked
            result = run_trial(trial, say_and_wait)
        else:
            ready = get_ready(trial)
            say_and_wait(READY)
            index = in_forks(len(asked.trials), asked.at_once, answer)
            if index is None:
                ready.engine.shutdown()
                return 0
            trial = asked.trials[index]
            del asked
            result = measure(ready, trial, _is_heard_by_nobody, time.perf_counter(), is_fork=True)
    except EngineDeadError as error:
        print(error, file=sys.stderr)
        return 1
    except (ValueError, StoreError) as error:
        print(error, file=sys.stderr)
        return REFUSED
    with answer:
        answer.write(msgspec.json.encode(result))
    return 0

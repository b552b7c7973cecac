"""One trial: warm-up, window, what it measured."""

import os
import resource
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from engines.protocol import HasStreams, StepEngine
from engines.registry import ENGINES
from harness.axes import Cell
from harness.collector.phase import Phase
from harness.collector.probe import Events
from harness.collector.result import ProcessResult
from harness.trial.answers import Answers
from harness.trial.arrivals import comes_by_itself
from harness.trial.client import Streams, TrialClient, serve_once, warm_up
from harness.trial.clock import PausedClock, RealClock, VirtualClock
from harness.trial.compute_metrics import compute_metrics
from harness.trial.engine_config import engine_config
from harness.trial.engine_counters import EngineCounters
from harness.trial.growing_lines import GrowingLine, leak_metrics
from harness.trial.in_each_process import (
    close_process_window,
    open_process_window,
    prepare_process,
    process_window_events,
    stop_process_counting,
)
from harness.trial.modes import MODES
from harness.trial.observation import Observation
from harness.trial.phase_pauses import phase_pauses
from harness.trial.ready import ReadyEngine, get_ready
from harness.trial.request_costs import RequestCosts, cost_metrics, request_costs
from harness.trial.rows import write_trial_rows
from harness.trial.run_queue import RunQueue
from harness.trial.sender import Sender
from harness.trial.spec import PAUSED, READY, Trial, TrialResult
from harness.trial.stage_seconds import Moments, stage_seconds
from harness.trial.step_costs import StepCosts
from harness.trial.watch import Extent, StepWatch
from workloads.schedule import Schedule

if TYPE_CHECKING:
    from harness.trial.cost_grid import CostModel


def run_trial(trial: Trial, say_and_wait: Callable[[bytes], None]) -> TrialResult:
    """Run one trial in this interpreter.

    ``say_and_wait`` says that it is prepared, or pauses, and returns when it shall go on.
    Raises ValueError where it cannot be run as asked.
    """
    began = time.perf_counter()
    ready = get_ready(trial)
    return measure_trial(ready, trial, say_and_wait, began)


class _Window(NamedTuple):
    """What is left of a window that is over, its engine gone; ``moments`` as `Moments` has them,
    from ``asked`` to ``closed``.
    """

    client: TrialClient
    answers: Answers
    watch: StepWatch
    counters: EngineCounters
    run_queue: RunQueue
    length_ns: int
    processes: list[ProcessResult]
    events: list[Events]
    moments: tuple[float, float, float, float]
    per_request: RequestCosts
    model: "CostModel | None"
    growing: list[GrowingLine] | None


def measure_trial(
    ready: ReadyEngine,
    trial: Trial,
    say_and_wait: Callable[[bytes], None],
    began: float,
    *,
    is_fork: bool = False,
) -> TrialResult:
    """As `run_trial`, on an engine that stands; a fork leaves the end of it to the others."""
    engine, stood = ready.engine, time.perf_counter()
    sender: Sender | None = None
    try:
        engine.collective_rpc(
            prepare_process,
            trial.cell.heap_objects if MODES[trial.mode].fills_heap else 0,
            trial.seed,
            MODES[trial.mode].times_passes,
        )
        filled = time.perf_counter()
        if _is_real_time(trial) and comes_by_itself(ready.schedule):
            sender = Sender(ready.schedule.arrival_seconds)
        window = _window(ready, trial, say_and_wait, sender)
    finally:
        if sender is not None:
            sender.close()
        if not is_fork:
            engine.shutdown()
    observation = _observation(ready.schedule, trial, window)
    write_trial_rows(trial.rows_path if trial.mode == "timing" else "", observation)
    _leave_the_core()
    # Another commit's engine may not tell.
    built = {} if is_fork else getattr(engine, "build_seconds", {})
    moments = Moments(began, stood, filled, *window.moments, window.length_ns / 1e9, built)
    return _result(ready, trial, window, observation, moments)


def _extent(ready: ReadyEngine, trial: Trial) -> Extent:
    full = min(trial.cell.batch_size, ready.schedule.num_requests)
    return Extent(
        full, trial.trace_every, trial.seed, ready.settings, trial.lines_of, ready.left_behind
    )


def _is_real_time(trial: Trial) -> bool:
    """Between slices time stands still, and no other process would know."""
    return not MODES[trial.mode].virtual_time and not trial.slice_steps


def _window(
    ready: ReadyEngine, trial: Trial, say_and_wait: Callable[[bytes], None], sender: Sender | None
) -> _Window:
    """Warm up, open the window, serve the schedule, close it."""
    cell, mode = trial.cell, MODES[trial.mode]
    schedule, engine, *_ = ready
    streams, output_text = _readers(engine, cell)
    # Where an engine has several threads or processes they may take one another's core.
    run_queue = RunQueue(is_told=trial.mode == "timing" and trial.is_exact)
    if not trial.slice_steps:
        asked, turned = _wait_for_the_turn(say_and_wait)
    watch = mode.watch(engine, _extent(ready, trial))
    warm_up(engine, schedule, cell.batch_size, streams=streams, rehearse=mode.rehearse)
    paused = PausedClock()
    client = TrialClient(
        engine,
        watch.step,
        schedule,
        VirtualClock() if mode.virtual_time else paused if trial.slice_steps else RealClock(),
        has_unfinished_requests=watch.has_unfinished_requests,
        arrivals=sender,
        streams=streams,
        take=watch.take,
        output_text=output_text,
        waited_ns=run_queue.waited_ns,
    )
    _open_windows(engine, trial)
    if trial.slice_steps:  # it waits for its first turn as for any other
        asked, turned = _wait_for_the_turn(say_and_wait)
    counters = EngineCounters(engine)
    watch.window_opens()
    opened_ns = time.perf_counter_ns()
    with run_queue:
        client.run(
            trial.max_steps,
            trial.slice_steps,
            partial(paused.stop_during, partial(say_and_wait, PAUSED)),  # no name: one object less
        )
        while watch.wants_more():
            serve_once(engine, watch.step, schedule, streams, output_text)
    closed_ns = time.perf_counter_ns()
    counters.window_closes()
    _abandon(engine, client, watch)
    counters.engine_is_idle(is_whole=not trial.max_steps)
    watch.window_closes(answers := Answers(client))
    return _Window(
        client=client,
        answers=answers,
        watch=watch,
        counters=counters,
        run_queue=run_queue,
        length_ns=closed_ns - opened_ns - paused.away_ns,
        processes=engine.collective_rpc(close_process_window),
        events=engine.collective_rpc(process_window_events),
        moments=(asked, turned, opened_ns / 1e9, closed_ns / 1e9),
        per_request=_request_costs(ready, trial, streams, output_text),
        model=_cost_model(ready, trial, streams),
        growing=_growing_lines(ready, trial, streams),
    )


def _wait_for_the_turn(say_and_wait: Callable[[bytes], None]) -> tuple[float, float]:
    """When it was asked for, and when it had come."""
    asked = time.perf_counter()
    say_and_wait(READY)
    return asked, time.perf_counter()


def _request_costs(
    ready: ReadyEngine,
    trial: Trial,
    streams: Streams | None,
    output_text: Callable[[int], str] | None,
) -> RequestCosts:
    """What a request costs beside its steps, in the modes that count it."""
    if not MODES[trial.mode].request_costs:
        return RequestCosts({}, {})
    return request_costs(ready.engine, ready.schedule, trial.cell.batch_size, streams, output_text)


def _cost_model(ready: ReadyEngine, trial: Trial, streams: Streams | None) -> "CostModel | None":
    """What a step costs by batch and context, in the mode that counts it."""
    if not MODES[trial.mode].cost_model:
        return None
    from harness.trial.cost_grid import cost_model  # no part of other trials' heap

    config = engine_config(trial.cell, ready.schedule)
    return cost_model(
        ready.engine, ready.schedule, trial.cell.batch_size, config.block_size, streams
    )


def _growing_lines(
    ready: ReadyEngine, trial: Trial, streams: Streams | None
) -> list[GrowingLine] | None:
    """Where bytes are left for good, in the mode that looks, if counts repeat."""
    if not (MODES[trial.mode].leaked_bytes and trial.is_exact):
        return None
    from harness.trial.leaked_bytes import growing_lines  # no part of any window's heap

    return growing_lines(
        ready.engine,
        ready.schedule,
        package=ENGINES.load(trial.cell.engine).package,
        block_size=engine_config(trial.cell, ready.schedule).block_size,
        batch_size=trial.cell.batch_size,
        streams=streams,
    )


def _observation(schedule: Schedule, trial: Trial, window: _Window) -> Observation:
    recorder, counters = window.client.recorder, window.counters
    return Observation(
        schedule=schedule,
        requests=recorder.requests,
        steps=recorder.steps,
        gaps=recorder.gaps,
        window_ns=window.length_ns,
        events=window.events,
        processes=window.processes,
        wire_bytes=counters.wire_bytes,
        wire_seconds=counters.wire_seconds,
        scheduler_stats=counters.scheduler_stats,
        device_work=counters.device_work,
        watched=window.watch.results(recorder.num_rows)
        | cost_metrics(window.per_request)
        | (window.model.metrics() if window.model else {})
        | leak_metrics(window.growing),
        counts_lateness=not trial.slice_steps,
        peak_rss=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    )


def _result(
    ready: ReadyEngine, trial: Trial, window: _Window, observation: Observation, at: Moments
) -> TrialResult:
    # Only now: what is imported before the window is part of the heap that is measured.
    from harness.trial.origin import origin

    measured = compute_metrics(observation, trial.mode)
    watch, hashes, stages = window.watch, window.answers.let_go(), stage_seconds(at)
    return TrialResult(
        cell=trial.cell,
        mode=trial.mode,
        seed=trial.seed,
        metrics=measured.metrics,
        processes=window.processes,
        tokens_sha256=hashes.tokens,
        text_sha256=hashes.text,
        finish_sha256=hashes.finish,
        lengths_sha256=hashes.lengths,
        script=ready.engine.script,
        **origin(ENGINES.load(trial.cell.engine).package),
        wall_seconds=sum(stages.values()) - stages["start"],
        stage_seconds=stages,
        window_seconds=window.length_ns / 1e9,
        waited_share=observation.waited_share if window.run_queue.tells else None,
        step_host_ns=observation.host_ns.tolist() if trial.slice_steps else [],
        steady_state=measured.steady_state,
        delivered=measured.delivered,
        engine_state=ready.state,
        collector_calls=list(watch.calls),
        growing_lines=window.growing or [],
        messages=list(watch.messages),
        stages=watch.stages,
        pauses=phase_pauses(observation),
        costs=_costs(window),
        c_functions=list(watch.c_functions),
        grid_steps=window.model.steps if window.model else [],
        sites=watch.sites,
        young=watch.young,
        long_run=watch.long_run,
        outputs=watch.outputs(trial.rows_path),
        ran=[*watch.ran, *window.per_request.ran],
        invalid=measured.invalid,
        recurs=measured.recurs,
    )


def _readers(engine: StepEngine, cell: Cell) -> tuple[Streams | None, Callable[[int], str] | None]:
    """Where outputs and texts are read; an engine that has none of them refuses the axis."""
    has_streams, has_text = cell.request_streams != "none", cell.detokenizer != "none"
    return (
        engine.request_stream if has_streams and isinstance(engine, HasStreams) else None,
        engine.output_text if has_text else None,
    )


def _open_windows(engine: StepEngine, trial: Trial) -> None:
    """In each of its processes. Raises ValueError where a collector is not as asked."""
    cell, mode = trial.cell, MODES[trial.mode]
    opened = (
        mode.policy or cell.gc,
        cell.batch_size,
        mode.probe,
        Phase(trial.seed, trial.gc_cycle) if mode.vary_phase else None,
    )
    if refusals := [text for text in engine.collective_rpc(open_process_window, *opened) if text]:
        raise ValueError(refusals[0])


def _abandon(engine: StepEngine, client: TrialClient, watch: StepWatch) -> None:
    """End what is left unserved; from here on no process counts."""
    # The built-in engine's worker process does not answer while a step is under way. That step is
    # the window's, and the worker is asked for no other.
    with suppress(RuntimeError):
        engine.collective_rpc(stop_process_counting)
    watch.steps_end()
    client.abandon()


def _costs(window: _Window) -> StepCosts | None:
    if window.model is not None:
        return StepCosts(
            num_steps=0, num_rows=0, functions=[], calls=[], per_request=window.model.functions
        )
    found, per_request = window.watch.costs, window.per_request
    if found is None:
        return None
    functions = {call: cost.by_function() for call, cost in per_request.costs.items()}
    return msgspec.structs.replace(found, per_request=functions, windows=per_request.windows)


_CORES = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
"""Those that this process began with: while trials take turns they are kept on one."""


def _leave_the_core() -> None:
    """Describe the machine as it is for whoever takes no turns."""
    if _CORES is not None:
        os.sched_setaffinity(0, _CORES)

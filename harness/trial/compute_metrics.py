"""From what a trial recorded to its metrics, by the definitions in `harness.metrics`."""

from typing import NamedTuple

import numpy as np

from engines.protocol import PHASES, FinishReason, Int64Array
from harness.metrics import METRICS
from harness.statistics.percentile import percentile_or_none
from harness.trial.arrival_fidelity import SentArrivals, check_delivered
from harness.trial.observation import OLDEST, Observation, Values
from harness.trial.request_metrics import gap_metrics, median_or_none, request_metrics
from harness.trial.steady_state import SteadyState, find_steady_state, steady_metrics
from harness.trial.watch import full_steps

MAX_DEVICE_LATE = 0.01
"""Share of the modelled step time by which waits may overrun before a trial is invalid."""


class TrialMetrics(NamedTuple):
    """``metrics`` in the table's order.

    ``invalid``: why the trial must not be used, "" where it may; ``recurs``: nor would another try
    be of use. ``steady_state`` and ``delivered``: of a trial that is timed.
    """

    metrics: Values
    invalid: str
    steady_state: SteadyState | None
    delivered: SentArrivals | None
    recurs: bool


def compute_metrics(seen: Observation, mode: str) -> TrialMetrics:
    """What a trial in ``mode`` says."""
    values = _collector(seen) | seen.watched
    values["num_steps"] = len(seen.steps)
    steady_state = delivered = None
    stats = seen.scheduler_stats
    if "num_preemptions" in stats:
        values["num_preemptions"] = stats["num_preemptions"]
    if "num_surplus_tokens" in stats:
        values["surplus_tokens"] = stats["num_surplus_tokens"]
    if queries := stats.get("prefix_cache_queries"):
        values["prefix_cache_hit_rate"] = stats["prefix_cache_hits"] / queries
    if seen.wire_bytes:
        values["wire_bytes_per_step"] = seen.wire_bytes / max(1, len(seen.steps))
    if mode == "timing":
        steady_state = find_steady_state(seen.column("in_flight"), seen.length_ns)
        arrivals = check_delivered(seen.schedule, seen.requests)
        delivered = arrivals.sent
        values |= _wire_times(seen)
        values |= request_metrics(seen.schedule, seen.requests) | gap_metrics(seen.gaps)
        if done := np.count_nonzero(seen.requests.finish_reason >= 0):
            cpu = sum(process.cpu_seconds for process in seen.processes)
            values["cpu_per_request"] = cpu / done
        values |= _steps(seen) | _pauses(seen) | _device(seen)
        values |= steady_metrics(seen, steady_state) | arrivals.metrics
        values["peak_rss"] = seen.peak_rss
    if mode == "tracked":
        values |= _tracked(seen)
    full_probe = _full_probe(seen)
    known = ((name, values[name]) for name in METRICS if name in values)
    metrics = {name: None if value is None else float(value) for name, value in known}
    late = _late(values.get("device_late")) if seen.counts_lateness else ""
    again = full_probe or _too_few_tokens(seen)
    return TrialMetrics(metrics, again or late, steady_state, delivered, bool(again))


def _wire_times(seen: Observation) -> Values:
    if not seen.wire_seconds:
        return {}
    steps = max(1, len(seen.steps))
    took = {name: seconds / steps for name, seconds in seen.wire_seconds.items()}
    num_ranks = sum(process.role == "worker" for process in seen.processes)
    codec = took["encode"] + took["decode"] + took["rank_encode"] + took["rank_decode"] / num_ranks
    return {f"wire_{name}_per_step": seconds for name, seconds in (took | {"codec": codec}).items()}


def _full_probe(seen: Observation) -> str:
    """The first process in which collections found no room, or ""."""
    for process, events in zip(seen.processes, seen.events, strict=False):
        if process.probe_dropped:
            return (
                f"the probe in the {process.role} process has room for "
                f"{len(events.generation):,} collections and {process.probe_dropped:,} more came, "
                "so pauses are missing: ask for fewer requests, shorter outputs or a higher "
                "threshold"
            )
    return ""


def _too_few_tokens(seen: Observation) -> str:
    """The first request that ended before its time, or "": it may where it has a reason to."""
    schedule, requests = seen.schedule, seen.requests
    if not schedule.ignore_eos or schedule.stop or schedule.stop_token_ids:
        return ""
    ended = np.isin(requests.finish_reason, (FinishReason.STOP, FinishReason.LENGTH))
    early = np.flatnonzero(ended & (requests.num_tokens < schedule.output_lens))
    if not len(early):
        return ""
    got, asked = (int(each[early[0]]) for each in (requests.num_tokens, schedule.output_lens))
    return (
        f"request {early[0]} ended with {got:,} of the {asked:,} tokens that were asked for, and "
        f"so did {len(early) - 1:,} more, so the work is not the workload's: have the engine heed "
        "max_tokens and ignore_eos"
    )


def _late(late: float | None) -> str:
    """By how much modelled waits overran, or "" where they did not by too much."""
    if late is None or late <= MAX_DEVICE_LATE:
        return ""
    return (
        f"modelled waits overran by {late:.1%} of the step time (at most {MAX_DEVICE_LATE:.0%}): "
        "the machine was too busy"
    )


def _steps(seen: Observation) -> Values:
    worst = seen.column("worst_gap_ns")
    length = seen.length_ns
    rows = seen.column("num_rows")
    host = seen.host_ns.sum() / 1e9
    processing = float(seen.column("processing_ns").sum()) / 1e9
    return _phases(seen) | {
        "itl_p99": percentile_or_none(worst[worst > 0] / 1e9, 99),
        "step_time_median": median_or_none(length[rows > 0] / 1e9),
        "host_time_per_step": host / len(length),
        "host_time_per_request_step": host / max(1, int(rows.sum())),
        "gc_attributed_gaps": _attributed(seen, length),
        "output_processing_per_step": processing / len(length) if processing else None,
        "output_processing_share": processing / (seen.window_ns / 1e9) if processing else None,
    }


def _phases(seen: Observation) -> Values:
    """Mean length of each; nothing of an engine that does not tell them apart."""
    if not seen.tells_phases:
        return {}
    return {f"phase_{name}": float(seen.phase(name).mean()) / 1e9 for name in PHASES}


def _device(seen: Observation) -> Values:
    seconds = float(seen.column("device_length_ns").sum()) / 1e9
    if not seconds:
        return {"device_late": None}
    idle: Values = {"device_idle_share": max(0.0, 1 - seconds / (seen.window_ns / 1e9))}
    work = seen.device_work
    if not work:
        return idle | {"device_late": float(seen.column("late_ns").sum()) / 1e9 / seconds}
    bandwidth, flops = work["bytes"] / seconds, work["flops"] / seconds
    copy, matmul = work.get("copy_bytes_per_second"), work.get("matmul_flops_per_second")
    limits = serial_limits(work)
    return idle | {
        "device_late": None,
        "device_time_per_step": seconds / len(seen.steps),
        "achieved_bandwidth": bandwidth,
        "achieved_bandwidth_share": bandwidth / copy if copy else None,
        "achieved_flops": flops,
        "achieved_flops_share": flops / matmul if matmul else None,
        "achieved_serial_share": sum(limits) / seconds if limits else None,
    }


class SerialLimits(NamedTuple):
    """Least seconds of parts of steps that follow one another, at what the device sustains."""

    linear: float
    attention: float
    rest: float


def serial_limits(work: dict[str, float]) -> SerialLimits | None:
    """Of `Observation.device_work`. Products and attention each take as long as their bytes or
    their arithmetic, whichever is longer; the rest moves bytes. None where a rate or a part is not
    known.
    """
    copy, matmul = work.get("copy_bytes_per_second"), work.get("matmul_flops_per_second")
    if not copy or not matmul or "linear_bytes" not in work:
        return None
    linear, attention = (
        max(work[f"{part}_bytes"] / copy, work[f"{part}_flops"] / matmul)
        for part in ("linear", "attention")
    )
    rest = work["bytes"] - work["linear_bytes"] - work["attention_bytes"]
    return SerialLimits(linear, attention, rest / copy)


def _attributed(seen: Observation, length: Int64Array) -> float | None:
    """Of the steps over twice the median, the share in which a collection ran in any process.

    The clocks of processes agree: `perf_counter_ns` counts from the start of the machine.
    """
    slow = np.flatnonzero(length > 2 * np.median(length))
    if not len(slow):
        return None
    touched = np.zeros(len(slow), np.bool_)
    for events in seen.events:
        # One process's collections follow one another, so those that touch a step are a slice.
        ends = events.start_ns + events.duration_ns
        first = np.searchsorted(ends, seen.steps[slow, 0])
        after = np.searchsorted(events.start_ns, seen.steps[slow, len(PHASES)])
        touched |= after > first
    return float(touched.mean())


def _pauses(seen: Observation) -> Values:
    events = seen.events[seen.engine]
    pauses = events.duration_ns / 1e9
    total, window = float(pauses.sum()), seen.window_ns / 1e9
    on_core = float(events.cpu_ns.sum()) / 1e9
    return {
        "gc_pause_total": total,
        "gc_pause_max": float(pauses.max(initial=0.0)),
        "gc_pause_p99": percentile_or_none(pauses, 99),
        "gc_pause_share": total / window,
        "gc_full_pass_share": float(pauses[events.generation == OLDEST].sum()) / window,
        "gc_full_pass_host_share": float(seen.full_pass_ns.sum() / max(1, seen.host_ns.sum())),
        "gc_pause_preempted": max(0.0, 1 - on_core / total) if total else None,
    }


def _collector(seen: Observation) -> Values:
    by_generation = np.sum([process.collections for process in seen.processes], axis=0)
    engine = seen.processes[seen.engine]
    values: Values = {f"gc_collections_gen{g}": int(n) for g, n in enumerate(by_generation)}
    values["gc_collections_per_1000_steps"] = (
        1000 * int(by_generation.sum()) / max(1, len(seen.steps))
    )
    values["tracked_heap"] = engine.state.tracked_objects
    if engine.full_pass_seconds:
        objects = max(1, engine.state.tracked_objects)
        values["full_pass_per_object"] = engine.full_pass_seconds / objects
    return values


def _tracked(seen: Observation) -> Values:
    """The engine has stamped counts of objects in place of times."""
    counts = seen.steps[:, : len(PHASES) + 1]
    peaks = counts.max(axis=1) - counts[:, 0]
    return {"tracked_peak_per_step": median_or_none(peaks[full_steps(seen.column("num_rows"))])}

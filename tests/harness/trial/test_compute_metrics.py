"""Every metric against the same thing computed from the stamps by plain loops."""

from itertools import pairwise
from statistics import mean, median

import msgspec
import numpy as np
import pytest
from examples import examples
from hypothesis import example, given
from hypothesis import strategies as st
from small import CELL, engine, process, schedule

from engines.protocol import PHASES
from harness.collector.probe import Events
from harness.metrics import METRICS
from harness.trial.client import TrialClient
from harness.trial.clock import VirtualClock
from harness.trial.compute_metrics import compute_metrics
from harness.trial.observation import Observation
from harness.trial.phase_pauses import BETWEEN, phase_pauses
from harness.trial.recorder import STEP_COLUMNS, RequestStamps
from harness.trial.steady_state import UnsteadyLoad, find_steady_state, steady_metrics

S = 1e9


@st.composite
def observations(draw) -> Observation:
    """Steps one after another and what requests got in them, with a few collections between."""
    num_requests = draw(st.integers(1, 6))
    rows, time_ns = [], draw(st.integers(1, 10**6))
    deliveries: list[list[int]] = [[] for _ in range(num_requests)]
    tokens = [0] * num_requests
    gaps: list[int] = []
    for _ in range(draw(st.integers(1, 12))):
        stamps = [time_ns]
        for _ in PHASES:
            stamps.append(stamps[-1] + draw(st.sampled_from([0, 1, 10, 1000, 10**6])))
        time_ns = delivered = stamps[-1] + draw(st.integers(1, 100))
        got = draw(st.sets(st.integers(0, num_requests - 1)))
        worst, before = 0, sum(tokens)
        for index in got:
            if deliveries[index]:
                gap = delivered - deliveries[index][-1]
                gaps.append(gap)
                worst = max(worst, gap)
            deliveries[index].append(delivered)
            tokens[index] += draw(st.integers(1, 3))
        wait = stamps[3] - stamps[2]
        device = draw(st.sampled_from([0, wait // 2, wait, 2 * wait]))
        length = draw(st.sampled_from([0, 10**6]))
        brought = sum(tokens) - before
        in_flight = draw(st.integers(len(got), num_requests))
        waited = draw(st.sampled_from([0, (stamps[-1] - stamps[0]) // 3, 10**7]))
        row = [delivered, len(got), device, length // 200, length, worst, brought, in_flight]
        took = delivered - stamps[0] + draw(st.sampled_from([0, 7, 10**6]))
        processing = draw(st.sampled_from([0, 10**4]))
        rows.append([*stamps, *row, took, waited, processing])
    sent = [draw(st.integers(1, d[0])) if d else 1 for d in deliveries]
    finished = [1 if d and draw(st.booleans()) else -1 for d in deliveries]
    requests = RequestStamps(
        scheduled_ns=np.array([draw(st.integers(0, at)) for at in sent]),
        sent_ns=np.array(sent),
        queued_ns=np.array(sent),
        first_ns=np.array([d[0] if d else 0 for d in deliveries]),
        last_ns=np.array([d[-1] if d else 0 for d in deliveries]),
        num_tokens=np.array(tokens),
        finish_reason=np.array(finished, np.int8),
    )
    edges = sorted(draw(st.lists(st.integers(0, time_ns), max_size=12, unique=True)))
    pauses = [(a, b - a) for a, b in list(pairwise(edges))[::2]]
    return Observation(
        schedule=schedule(
            [9] * num_requests, max_concurrency=draw(st.sampled_from([0, 2])), ignore_eos=False
        ),
        requests=requests,
        steps=np.array(rows, np.int64),
        gaps=np.array(gaps, np.int64),
        window_ns=time_ns,
        events=[events(pauses)],
        processes=[
            msgspec.structs.replace(process((7, 3, 1)), cpu_seconds=0.25),
            msgspec.structs.replace(process((5, 2, 0)), role="worker", cpu_seconds=0.5),
        ],
        wire_bytes=draw(st.sampled_from([0, 1000])),
        wire_seconds=draw(st.sampled_from([{}, WIRE])),
        scheduler_stats=draw(st.sampled_from([{}, stats(0), stats(4)])),
        device_work=draw(st.sampled_from([{}, WORK, WORK_WITHOUT_CEILINGS, OF_AN_OLDER_ENGINE])),
        watched={},
        peak_rss=4096,
    )


@pytest.mark.parametrize(
    ("tokens", "reasons", "changes", "said"),
    [
        ([9, 9], [1, 1], {}, ""),
        (
            [9, 7],
            [1, 1],
            {},
            "request 1 ended with 7 of the 9 tokens that were asked for, and so d",
        ),
        (
            [8, 7],
            [0, 1],
            {},
            "request 0 ended with 8 of the 9 tokens that were asked for, and so d",
        ),
        ([8, 7], [-1, 2], {}, ""),
        ([8, 7], [0, 1], {"ignore_eos": False}, ""),
        ([8, 7], [0, 1], {"stop": ("end",)}, ""),
        ([8, 7], [0, 1], {"stop_token_ids": (2,)}, ""),
    ],
)
@examples(5)
@given(seen=observations())
def test_a_trial_in_which_a_request_ended_early_is_invalid(seen, tokens, reasons, changes, said):
    requests = seen.requests._replace(
        num_tokens=np.array(tokens), finish_reason=np.array(reasons, np.int8)
    )
    asked = schedule([9, 9], **changes)
    seen = seen._replace(schedule=asked, requests=requests, counts_lateness=False)
    found = compute_metrics(seen, "counts")
    assert found.invalid.startswith(said)
    assert bool(found.invalid) == found.recurs == bool(said)


WIRE = {"encode": 1.0, "decode": 2.0, "rank_encode": 4.0, "rank_decode": 8.0, "spin": 16.0}
WORK_WITHOUT_CEILINGS = {
    "bytes": 6e9,
    "flops": 8e9,
    "linear_bytes": 1e9,
    "linear_flops": 7e9,
    "attention_bytes": 3e9,
    "attention_flops": 1e9,
}
WORK = WORK_WITHOUT_CEILINGS | {"copy_bytes_per_second": 3e10, "matmul_flops_per_second": 1e11}
# Products are bound by arithmetic (7e9 / 1e11 s), attention by bytes (3e9 / 3e10), as the rest is.
LEAST_SECONDS = 0.07 + 0.1 + 2e9 / 3e10
OF_AN_OLDER_ENGINE = {name: WORK[name] for name in WORK if name[:6] not in ("linear", "attent")}


def stats(queries: int) -> dict[str, int]:
    return {
        "num_preemptions": 3,
        "num_surplus_tokens": 5,
        "prefix_cache_queries": queries,
        "prefix_cache_hits": 1,
    }


def events(pauses: list[tuple[int, int]]) -> Events:
    starts, durations = zip(*pauses, strict=True) if pauses else ((), ())
    generation = np.array([start % 3 for start in starts], np.int8)
    zeros, lengths = np.zeros(len(pauses), np.int64), np.array(durations, np.int64)
    # The thread had its core for three quarters of each.
    return Events(generation, np.array(starts, np.int64), lengths, zeros, lengths * 3 // 4)


def by_hand(seen: Observation) -> dict[str, float | None]:
    """The table's definitions, one request, one step and one collection at a time."""
    r = seen.requests
    done = [i for i, reason in enumerate(r.finish_reason.tolist()) if reason >= 0]
    first, last, sent = r.first_ns.tolist(), r.last_ns.tolist(), r.sent_ns.tolist()
    tokens = r.num_tokens.tolist()
    steps = [dict(zip(STEP_COLUMNS, row, strict=True)) for row in seen.steps.tolist()]
    ends = {name: ("start", *PHASES)[number] for number, name in enumerate(PHASES)}
    host = [
        max(0, s["took_ns"] - min(s["device_ns"], s["wait"] - s["launch"]) - s["waited_ns"])
        for s in steps
    ]
    lengths = [s["took_ns"] for s in steps]
    (own,) = seen.events
    pauses = list(zip(own.start_ns.tolist(), own.duration_ns.tolist(), strict=True))
    slow = [s for s, length in zip(steps, lengths, strict=True) if length > 2 * median(lengths)]
    hit = [
        any(start < s["process"] and start + lasted >= s["start"] for start, lasted in pauses)
        for s in slow
    ]
    lasting = sum(duration for _, duration in pauses) / S
    full = [(start, lasted) for start, lasted in pauses if start % 3 == 2]
    begun = [s["start"] for s in steps] + [10**18]
    # Where it is known how long others had the core, that is in no pass either.
    on_core = any(s["waited_ns"] for s in steps)
    full_by_step = [
        min(
            at_work,
            sum(
                lasted * 3 // 4 if on_core else lasted
                for start, lasted in full
                if begin <= start < after
            ),
        )
        for at_work, (begin, after) in zip(host, pairwise(begun), strict=True)
    ]
    modelled = sum(s["device_length_ns"] for s in steps)
    processing = sum(s["processing_ns"] for s in steps)
    several = [i for i in done if tokens[i] > 1 and last[i] > first[i]]
    out: dict[str, float | None] = {
        "num_steps": len(steps),
        "itl_median": median(seen.gaps.tolist()) / S if len(seen.gaps) else None,
        "itl_p99": None,
        "itl_max": max(seen.gaps.tolist(), default=0) / S if len(seen.gaps) else None,
        "step_time_median": median(
            [length for s, length in zip(steps, lengths, strict=True) if s["num_rows"]]
        )
        / S
        if any(s["num_rows"] for s in steps)
        else None,
        "host_time_per_step": mean(host) / S,
        "host_time_per_request_step": sum(host) / S / max(1, sum(s["num_rows"] for s in steps)),
        "gc_collections_gen0": 12,
        "gc_collections_gen1": 5,
        "gc_collections_gen2": 1,
        "gc_collections_per_1000_steps": 1000 * 18 / len(steps),
        "gc_pause_total": lasting,
        "gc_pause_max": max((duration for _, duration in pauses), default=0) / S,
        "gc_pause_p99": None,
        "gc_pause_share": lasting / (seen.window_ns / S),
        "gc_full_pass_share": sum(lasted for _, lasted in full) / seen.window_ns,
        "gc_full_pass_host_share": sum(full_by_step) / max(1, sum(host)),
        "gc_pause_preempted": 1 - sum(duration * 3 // 4 for _, duration in pauses) / S / lasting
        if lasting
        else None,
        "gc_attributed_gaps": mean(hit) if hit else None,
        "tracked_heap": 1000,
        "full_pass_per_object": 0.5 / 1000,
        "device_late": sum(s["late_ns"] for s in steps) / modelled if modelled else None,
        "output_processing_per_step": processing / S / len(steps) if processing else None,
        "output_processing_share": processing / seen.window_ns if processing else None,
        "peak_rss": 4096,
        "send_late_p99": None,
        "arrival_gap_cv": None,
    }
    out |= {name: None for name in METRICS if name.startswith("steady_")}
    if modelled:
        out["device_idle_share"] = max(0.0, 1 - modelled / seen.window_ns)
    if any(s[name] > s[ends[name]] for s in steps for name in PHASES[1:]):
        for name in PHASES:
            out[f"phase_{name}"] = mean(s[name] - s[ends[name]] for s in steps) / S
    if seen.scheduler_stats:
        out["num_preemptions"] = 3
        out["surplus_tokens"] = 5
        if seen.scheduler_stats["prefix_cache_queries"]:
            out["prefix_cache_hit_rate"] = 1 / 4
    if seen.device_work:
        out["device_late"] = None
        if modelled:
            told = "copy_bytes_per_second" in seen.device_work
            out |= {
                "device_time_per_step": modelled / S / len(steps),
                "achieved_bandwidth": 6e9 * S / modelled,
                "achieved_bandwidth_share": 6e9 * S / modelled / 3e10 if told else None,
                "achieved_flops": 8e9 * S / modelled,
                "achieved_flops_share": 8e9 * S / modelled / 1e11 if told else None,
                "achieved_serial_share": LEAST_SECONDS * S / modelled
                if seen.device_work == WORK
                else None,
            }
    if seen.wire_seconds:
        out |= {
            f"wire_{name}_per_step": seconds / len(steps)
            for name, seconds in (WIRE | {"codec": 15.0}).items()
        }
    if seen.wire_bytes:
        out["wire_bytes_per_step"] = seen.wire_bytes / len(steps)
    if done:
        wall = (max(last[i] for i in done) - min(sent[i] for i in done)) / S
        out |= {
            "request_throughput": len(done) / wall if wall else None,
            "seconds_per_request": wall / len(done) if wall else None,
            "cpu_per_request": sum(each.cpu_seconds for each in seen.processes) / len(done),
            "output_throughput": sum(tokens[i] for i in done) / wall if wall else None,
            "ttft_mean": mean(first[i] - sent[i] for i in done) / S,
            "ttft_median": median(first[i] - sent[i] for i in done) / S,
            "ttft_p99": None,
            "ttft_from_schedule_median": None
            if seen.schedule.max_concurrency
            else median(first[i] - r.scheduled_ns.tolist()[i] for i in done) / S,
            "tpot_mean": mean((last[i] - first[i]) / (tokens[i] - 1) for i in several) / S
            if several
            else None,
            "tpot_median": median((last[i] - first[i]) / (tokens[i] - 1) for i in several) / S
            if several
            else None,
            "tpot_p99": None,
            "e2el_median": median(last[i] - sent[i] for i in done) / S,
            "e2el_from_schedule_median": None
            if seen.schedule.max_concurrency
            else median(last[i] - r.scheduled_ns.tolist()[i] for i in done) / S,
        }
    return out


@examples(150)
@given(observations())
def test_every_metric_is_what_its_definition_says(seen):
    expected = by_hand(seen)
    values, invalid, steady_state, delivered, _ = compute_metrics(seen, "timing")
    assert set(values) == set(expected)
    for name, value in expected.items():
        assert values[name] == (
            None if value is None else pytest.approx(value, rel=1e-6, abs=1e-12)
        )
    assert (invalid, delivered) == ("", None)
    assert isinstance(steady_state, UnsteadyLoad)


@examples(50)
@given(observations())
def test_a_collection_is_of_the_phase_in_which_it_began(seen):
    expected: dict[str, list[int]] = {}
    for start, length in zip(seen.events[0].start_ns, seen.events[0].duration_ns, strict=True):
        phase = BETWEEN
        for row in seen.steps:
            for name, (begin, end) in zip(PHASES, pairwise(row[: len(PHASES) + 1]), strict=True):
                phase = name if begin <= start < end else phase
        expected.setdefault(phase, []).append(int(length))
    found = phase_pauses(seen)
    assert {each.role for each in found} <= {"engine"}
    assert {each.phase: each.collections for each in found} == {
        phase: len(lengths) for phase, lengths in expected.items()
    }
    for each in found:
        assert each.seconds == pytest.approx(sum(expected[each.phase]) / S)


@given(observations())
def test_metrics_are_known_ordered_and_of_their_mode(seen):
    order = list(METRICS)
    for mode in ("timing", "counts", "tracked", "memory", "leaks", "opcodes", "wire"):
        values = compute_metrics(seen, mode).metrics
        assert list(values) == [name for name in order if name in values]
    counts = compute_metrics(seen, "counts").metrics
    assert not {name for name in counts if METRICS[name].kind == "timing"} - {
        "full_pass_per_object"
    }


@example(100, 10_000)
@example(101, 10_000)
@given(st.integers(0, 300), st.integers(1, 300))
def test_waits_that_overrun_by_more_than_a_hundredth_make_a_trial_invalid(late, length):
    row = dict.fromkeys(STEP_COLUMNS, 0) | {
        "process": 1,
        "num_rows": 1,
        "late_ns": late,
        "device_length_ns": length,
    }
    seen = made_up(steps=np.array([[row[name] for name in STEP_COLUMNS]]))
    invalid = compute_metrics(seen, "timing").invalid
    assert bool(invalid) == (late / length > 0.01)
    if invalid:
        assert "the machine was too busy" in invalid


def made_up(**changes) -> Observation:
    zeros = np.zeros(1, np.int64)
    requests = RequestStamps(zeros, zeros, zeros, zeros, zeros, zeros, np.full(1, -1, np.int8))
    steps = np.zeros((1, len(STEP_COLUMNS)), np.int64)
    gaps = np.zeros(0, np.int64)
    seen = Observation(
        schedule([1]), requests, steps, gaps, 1, [events([])], [process()], 0, {}, {}, {}, {}, 0
    )
    return seen._replace(**changes)


@pytest.mark.parametrize(("number", "told"), [(661, False), (662, True)])
def test_percentiles_need_enough_samples(number, told):
    rng = np.random.default_rng(0)
    steps = np.zeros((number, len(STEP_COLUMNS)), np.int64)
    worst = rng.integers(1, 10**6, number)
    steps[:, STEP_COLUMNS.index("worst_gap_ns")] = worst
    sent = np.full(number, 1)
    first = rng.integers(2, 10**6, number)
    count, reason = np.full(number, 3), np.ones(number, np.int8)
    requests = RequestStamps(sent, sent, sent, first, 2 * first, count, reason)
    pauses = [(i * 10**6, int(duration)) for i, duration in enumerate(worst)]
    seen = made_up(
        steps=steps, requests=requests, gaps=worst, events=[events(pauses)], window_ns=10**9
    )
    values = compute_metrics(seen, "timing").metrics
    expected = {
        "itl_p99": np.percentile(worst, 99) / S,
        "ttft_p99": np.percentile(first - 1, 99) / S,
        "tpot_p99": np.percentile(first / 2, 99) / S,
        "gc_pause_p99": np.percentile(worst, 99) / S,
    }
    for name, value in expected.items():
        assert values[name] == (pytest.approx(value) if told else None)


def test_a_steady_window_is_measured_by_its_own_steps():
    rng = np.random.default_rng(0)
    number = 1_000
    columns = {name: np.zeros(number, np.int64) for name in STEP_COLUMNS}
    moment = 10**9
    for i in range(number):
        for name in ("start", *PHASES, "delivered"):
            columns[name][i] = moment = moment + int(rng.integers(100_000, 110_000))
    columns["in_flight"][:] = 8
    columns["in_flight"][900:] = 3
    columns["num_rows"][:] = rng.integers(1, 9, number)
    columns["num_tokens"][:] = columns["num_rows"] * 2
    columns["worst_gap_ns"][:] = rng.integers(1, 10**6, number)
    columns["device_ns"][:] = 50_000
    columns["took_ns"] = columns["delivered"] - columns["start"] + 300
    pauses = [(int(start), 5_000) for start in columns["launch"][::3]]
    seen = made_up(steps=np.stack(list(columns.values()), axis=1), events=[events(pauses)])
    steady = find_steady_state(seen.column("in_flight"), seen.length_ns)
    values, invalid, found, *_ = compute_metrics(seen, "timing")
    assert (invalid, found) == ("", steady)
    inside = range(steady.first, steady.after)
    assert 662 <= len(inside) <= 900
    seconds = (columns["delivered"][inside[-1]] - columns["delivered"][inside[0]]) / S
    length = [int(columns["took_ns"][i]) for i in inside]
    expected = {
        "steady_share": len(inside) / number,
        "steady_output_throughput": sum(columns["num_tokens"][i] for i in inside[1:]) / seconds,
        "steady_itl_p99": np.percentile(columns["worst_gap_ns"][inside], 99) / S,
        "steady_step_time_median": median(length) / S,
        "steady_host_time_per_request_step": (sum(length) - 50_000 * len(inside))
        / S
        / int(columns["num_rows"][inside].sum()),
        "steady_gc_pause_share": 5_000 / S * sum(i % 3 == 0 for i in inside) / seconds,
    }
    assert {name: values[name] for name in expected} == pytest.approx(expected)
    assert steady_metrics(seen, steady) == pytest.approx(expected)


def test_tracked_objects_are_counted_in_full_steps_alone():
    columns = [STEP_COLUMNS.index(name) for name in ("start", *PHASES, "num_rows")]
    script = [  # the count at the six stamps, and the rows
        (100, 100, 103, 103, 110, 104, 8),
        (106, 106, 106, 109, 108, 107, 8),
        (110, 110, 150, 110, 110, 110, 2),
        (110, 110, 110, 110, 110, 110, 8),
    ]
    steps = np.zeros((4, len(STEP_COLUMNS)), np.int64)
    steps[:, columns] = script
    values = compute_metrics(made_up(steps=steps), "tracked").metrics
    assert values["tracked_peak_per_step"] == median([10, 3, 0])


def test_a_run_of_the_real_engine_agrees_with_its_stamps():
    of = schedule([3, 1, 6, 2, 6], max_concurrency=3)
    served = engine(of, msgspec.structs.replace(CELL, output_processing="overlapped"))
    ticks = iter(range(1, 10**6, 7))
    served.clock = lambda: next(ticks)
    client = TrialClient(served, served.step, of, VirtualClock())
    client.run()
    recorder = client.recorder
    seen = made_up(
        schedule=of, requests=recorder.requests, steps=recorder.steps, gaps=recorder.gaps
    )
    values = compute_metrics(seen, "timing").metrics
    expected = by_hand(seen)
    for name in expected:
        if not name.startswith(("gc_collections", "tracked", "full_pass", "peak_rss")):
            assert values[name] == (
                None if expected[name] is None else pytest.approx(expected[name])
            )
    assert values["tpot_median"] == pytest.approx(0.010), "a token a step of the virtual clock"

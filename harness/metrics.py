"""The one table of metrics: what each is called, counted in, which way is better, and whence."""

from typing import Any, Literal, NamedTuple, get_args

_CROSSING = (
    ("scheduler_output", "to the workers", ", of one rank where there are several"),
    ("model_runner_output", "back from them", ", of the rank that answers"),
)
_PARTS = {
    "parameters": "requests' sampling parameters",
    "prompt": "prompts",
    "output_ids": "ids of sampled tokens",
    "names": "names of classes, modules and fields, and references to such names",
    "rest": "everything else",
}


_ABBREVIATIONS = ("ttft", "tpot", "itl", "e2el", "gc")


def differs(before: Any, after: Any, noise_floor: Any, least_change: Any) -> Any:
    """Whether changes are large enough to speak of: above both floors. Floats, or equal arrays."""
    change = abs(after - before)
    return (change > least_change) & (change > noise_floor * abs(before))


Direction = Literal["higher", "lower", "neither"]
MetricKind = Literal["exact", "timing"]
StepPart = Literal["fixed", "row", "pair", "context", "block", "block_step", "prompt"]
"""Of a step by batch and context, as `harness.trial.cost_grid` tells them apart."""
STEP_PARTS: tuple[StepPart, ...] = get_args(StepPart)
AT_MOST_ONE_A_ROW = frozenset(f"bytecodes_per_{part}" for part in ("fixed", "block", "block_step"))
"""Metrics of the parts that a decode step has no more of than requests."""
When = Literal["step", "add", "finish", "abort", "preempt", StepPart]
"""``step``: per request and step; per request, as it is added, served or aborted; or a part."""


class Metric(NamedTuple):
    """A metric's definition. ``kind`` is how it behaves on a cell that can be exact.

    Two values count as different from ``noise_floor`` (relative) and ``least_change`` (in the
    metric's unit) on: below both lies what no one would act upon, exact though it may be.
    ``full_passes``: the metric that says what share of its time full passes take; ``host_share``:
    the one that says what share of it is host time, where the rest does not depend on the machine.
    ``when``: the part of an engine's work that it is of, where it is of one call of a request;
    ``counted``: what is counted of that call, in several windows. ``noun``: what it is called in a
    sentence, where that is not its name; ``counted_as``: what so and so many of it are called.
    """

    name: str
    unit: str
    direction: Direction
    kind: MetricKind
    mode: str
    definition: str
    source: str
    noise_floor: float = 0.02
    least_change: float = 0.0
    full_passes: str = ""
    host_share: str = ""
    when: When = "step"
    counted: Literal["", "bytecodes", "allocations"] = ""
    noun: str = ""
    counted_as: str = ""

    @property
    def words(self) -> str:
        """What it is called in a sentence: "TPOT median"."""
        words = self.name.split("_")
        return self.noun or " ".join(
            word.upper() if word in _ABBREVIATIONS else word for word in words
        )

    def differs(self, before: float, after: float) -> bool:
        """Whether a change is large enough to speak of."""
        return bool(differs(before, after, self.noise_floor, self.least_change))

    @property
    def decides(self) -> bool:
        """Whether every round has a sample of it and one of two samples is the better."""
        sampled = self.mode in ("timing", "counts") and self.name != "gc_effect"
        return sampled and self.direction != "neither"


_OF_A_PART: dict[StepPart, tuple[str, float, str]] = {
    "fixed": (
        "of a decode step that depend on none of its requests",
        10,
        "per step, whatever its batch",
    ),
    "row": ("that each request adds to a decode step", 0.5, "per step for each request in it"),
    "pair": (
        "that a decode step executes times the square of its requests",
        0.001,
        "per step for each pair of requests",
    ),
    "context": (
        "that each token in the KV cache adds to a decode step of its request",
        0.001,
        "per step for each token of context",
    ),
    "block": (
        "that a decode step executes for each block of the KV cache that begins, and for each that "
        "fills",
        2,
        "for each block of the KV cache",
    ),
    "block_step": (
        "that a decode step executes where any block begins, and where any fills",
        10,
        "per step in which blocks begin or fill",
    ),
    "prompt": (
        "to add a request and compute its prompt, for each token of 4,032 more",
        0.01,
        "for each token of a prompt",
    ),
}
"""What is counted of each, the least change to speak of, and what so and so many are called."""

_TABLE = (
    Metric(
        "request_throughput",
        "req/s",
        "higher",
        "timing",
        "timing",
        "completed requests / (last completion - first dispatch)",
        "vLLM bench serve",
        full_passes="gc_full_pass_share",
        host_share="device_idle_share",
    ),
    Metric(
        "seconds_per_request",
        "s/req",
        "lower",
        "timing",
        "timing",
        "(last completion - first dispatch) / completed requests: request_throughput for tools "
        "that take every rise for a loss",
        "docs/asv.md",
        full_passes="gc_full_pass_share",
        host_share="device_idle_share",
    ),
    Metric(
        "cpu_per_request",
        "s/req",
        "lower",
        "timing",
        "timing",
        "CPU time of all of the engine's processes / completed requests",
        "docs/gate.md",
    ),
    Metric(
        "output_throughput",
        "tok/s",
        "higher",
        "timing",
        "timing",
        "output tokens of completed requests / (last completion - first dispatch)",
        "vLLM bench serve",
        full_passes="gc_full_pass_share",
        host_share="device_idle_share",
    ),
    Metric(
        "ttft_mean",
        "s",
        "lower",
        "timing",
        "timing",
        "first token - send, mean over requests",
        "vLLM bench serve",
    ),
    Metric(
        "ttft_median",
        "s",
        "lower",
        "timing",
        "timing",
        "first token - send, median over requests",
        "vLLM bench serve",
        noun="time to first token",
    ),
    Metric(
        "ttft_p99",
        "s",
        "lower",
        "timing",
        "timing",
        "first token - send, 99th percentile over requests; null below 662",
        "vLLM bench serve",
    ),
    Metric(
        "ttft_from_schedule_median",
        "s",
        "lower",
        "timing",
        "timing",
        "first token - scheduled arrival, median over requests: counts the queueing that a "
        "client's own concurrency cap hides",
        "vLLM #54101",
    ),
    Metric(
        "send_late_p99",
        "s",
        "neither",
        "timing",
        "timing",
        "send - scheduled arrival, 99th percentile over requests that come by themselves; null "
        "below 662",
        "docs/method.md",
    ),
    Metric(
        "arrival_gap_cv",
        "sd/mean",
        "neither",
        "timing",
        "timing",
        "standard deviation of the gaps between sends / their mean, where requests come by "
        "themselves: 0 at a constant rate, 1 of a Poisson process",
        "docs/method.md",
    ),
    Metric(
        "connect_mean",
        "s",
        "neither",
        "timing",
        "timing",
        "written - sent, mean over requests: what a new connection (TCP, TLS) takes of TTFT",
        "docs/load.md",
    ),
    Metric(
        "tpot_mean",
        "s",
        "lower",
        "timing",
        "timing",
        "(last token - first token) / (output tokens - 1) per request, mean over requests with "
        "at least two tokens",
        "vLLM bench serve",
    ),
    Metric(
        "tpot_median",
        "s",
        "lower",
        "timing",
        "timing",
        "(last token - first token) / (output tokens - 1) per request, median over requests "
        "with at least two tokens",
        "vLLM bench serve",
    ),
    Metric(
        "tpot_p99",
        "s",
        "lower",
        "timing",
        "timing",
        "the same, 99th percentile over requests; null below 662",
        "vLLM bench serve",
    ),
    Metric(
        "itl_median",
        "s",
        "lower",
        "timing",
        "timing",
        "gap between two deliveries to one request, median over all gaps",
        "vLLM bench serve",
    ),
    Metric(
        "itl_p99",
        "s",
        "lower",
        "timing",
        "timing",
        "the same, 99th percentile over steps, each step one event (the worst gap in it); "
        "null below 662 steps",
        "vLLM bench serve; steps as events: docs/method.md",
    ),
    Metric(
        "itl_gap_p99",
        "s",
        "lower",
        "timing",
        "timing",
        "the same, 99th percentile over all gaps: of runs over HTTP, where steps cannot be seen "
        "and the gaps of one step count one by one; null below 662 gaps",
        "vLLM bench serve",
    ),
    Metric(
        "itl_max", "s", "lower", "timing", "timing", "the longest gap of all", "vLLM bench serve"
    ),
    Metric(
        "e2el_median",
        "s",
        "lower",
        "timing",
        "timing",
        "last token - send, median over requests",
        "vLLM bench serve",
    ),
    Metric(
        "e2el_from_schedule_median",
        "s",
        "lower",
        "timing",
        "timing",
        "last token - scheduled arrival, median over requests",
        "vLLM #54101",
    ),
    Metric(
        "step_time_median",
        "s",
        "lower",
        "timing",
        "timing",
        "wall time of one engine step, median over steps",
        "docs/metrics.md",
    ),
    Metric(
        "phase_schedule",
        "s",
        "lower",
        "timing",
        "timing",
        "time in scheduling and block accounting, mean per step",
        "docs/engines.md",
    ),
    Metric(
        "phase_launch",
        "s",
        "lower",
        "timing",
        "timing",
        "time to hand the step to the runner, mean per step",
        "docs/engines.md",
    ),
    Metric(
        "phase_wait",
        "s",
        "lower",
        "timing",
        "timing",
        "time blocked until the step's tokens were there (with a worker process: its work and "
        "the hop too), mean per step",
        "docs/engines.md",
    ),
    Metric(
        "phase_handoff",
        "s",
        "lower",
        "timing",
        "timing",
        "time to bring the tokens from the device tensor into their representation, mean per step",
        "docs/engines.md",
    ),
    Metric(
        "phase_process",
        "s",
        "lower",
        "timing",
        "timing",
        "time in output processing: delivery, stop checks, output objects, mean per step",
        "docs/engines.md",
    ),
    Metric(
        "output_processing_per_step",
        "s",
        "lower",
        "timing",
        "timing",
        "time to make the outputs, find stop strings and end requests, wherever that is done, "
        "mean per step",
        "docs/output-processing.md",
    ),
    Metric(
        "output_processing_share",
        "share of wall",
        "lower",
        "timing",
        "timing",
        "the same time / the measured window: what could be gained where all of it were done "
        "while the device works",
        "docs/output-processing.md",
    ),
    Metric(
        "host_time_per_step",
        "s",
        "lower",
        "timing",
        "timing",
        "time that a step takes its caller, less the time blocked on the device and, on an "
        "exact cell, the time in which another program had the core, mean per step",
        "docs/method.md",
        full_passes="gc_full_pass_host_share",
    ),
    Metric(
        "host_time_per_request_step",
        "s",
        "lower",
        "timing",
        "timing",
        "the same per scheduled request and step: sum of host time / sum of rows",
        "docs/method.md",
        full_passes="gc_full_pass_host_share",
        noun="host time per request and step",
    ),
    Metric(
        "num_steps",
        "steps",
        "neither",
        "exact",
        "timing",
        "steps in the measured window",
        "docs/method.md",
    ),
    Metric(
        "steady_share",
        "share of steps",
        "neither",
        "timing",
        "timing",
        "steps of the steady state / all steps; this and the others of it are null where there "
        "is none",
        "docs/method.md",
    ),
    Metric(
        "steady_output_throughput",
        "tok/s",
        "higher",
        "timing",
        "timing",
        "tokens delivered in the steady state after its first step / time since that step's "
        "delivery",
        "docs/method.md",
    ),
    Metric(
        "steady_itl_p99",
        "s",
        "lower",
        "timing",
        "timing",
        "itl_p99 over the steps of the steady state; null below 662 steps",
        "docs/method.md",
    ),
    Metric(
        "steady_step_time_median",
        "s",
        "lower",
        "timing",
        "timing",
        "step_time_median over the steps of the steady state",
        "docs/method.md",
    ),
    Metric(
        "steady_host_time_per_request_step",
        "s",
        "lower",
        "timing",
        "timing",
        "host_time_per_request_step over the steps of the steady state",
        "docs/method.md",
    ),
    Metric(
        "steady_gc_pause_share",
        "share of wall",
        "lower",
        "timing",
        "timing",
        "gc_pause_share over the time of the steady state",
        "gc.callbacks",
    ),
    Metric(
        "num_preemptions",
        "preemptions",
        "lower",
        "exact",
        "counts",
        "running requests that gave up their KV blocks and were computed again",
        "vLLM num_preemptions",
    ),
    Metric(
        "surplus_tokens",
        "tokens",
        "lower",
        "exact",
        "counts",
        "tokens that were sampled and given to nobody: behind a stop, or of a request that had "
        "ended, been aborted or preempted by then",
        "docs/output-processing.md",
    ),
    Metric(
        "prefix_cache_hit_rate",
        "share of tokens",
        "higher",
        "exact",
        "counts",
        "tokens of admitted requests that a cached prefix held / all their tokens to compute; "
        "with prefix caching alone",
        "vLLM prefix_cache_hits / prefix_cache_queries",
    ),
    Metric(
        "gc_collections_gen0",
        "collections",
        "lower",
        "exact",
        "counts",
        "gen-0 collections in the window, all processes",
        "gc.get_stats",
        0.02,
        2,
        noun="young collections",
    ),
    Metric(
        "gc_collections_gen1",
        "collections",
        "lower",
        "exact",
        "counts",
        "gen-1 collections in the window, all processes",
        "gc.get_stats",
        0.02,
        2,
        noun="collections of generation 1",
    ),
    Metric(
        "gc_collections_gen2",
        "collections",
        "lower",
        "exact",
        "counts",
        "gen-2 (full) collections in the window, all processes",
        "gc.get_stats",
        0.02,
        2,
        noun="full collections",
    ),
    Metric(
        "gc_collections_per_1000_steps",
        "collections",
        "lower",
        "exact",
        "counts",
        "collections of all generations per 1,000 steps",
        "gc.get_stats",
        0.01,
        10,
        counted_as="collections per 1,000 steps",
    ),
    Metric(
        "full_passes_per_1000_steps",
        "full passes",
        "lower",
        "exact",
        "long_run",
        "collections of the whole heap per 1,000 steps of the engine in the long run, the workload "
        "served again and again",
        "gc.callbacks",
        0.05,
        0.05,
    ),
    Metric(
        "gc_pause_total",
        "s",
        "lower",
        "timing",
        "timing",
        "time inside collections, in the process that serves the requests",
        "gc.callbacks",
    ),
    Metric(
        "gc_pause_max",
        "s",
        "lower",
        "timing",
        "timing",
        "the longest collection there",
        "gc.callbacks",
        noun="longest pause",
    ),
    Metric(
        "gc_pause_p99",
        "s",
        "lower",
        "timing",
        "timing",
        "99th percentile over collections there; null below 662",
        "gc.callbacks",
    ),
    Metric(
        "gc_pause_share",
        "share of wall",
        "lower",
        "timing",
        "timing",
        "time inside collections there / wall time of the window",
        "gc.callbacks",
        noun="time in collections",
    ),
    Metric(
        "gc_full_pass_share",
        "share of wall",
        "lower",
        "timing",
        "timing",
        "time inside full passes there / wall time of the window",
        "gc.callbacks",
    ),
    Metric(
        "gc_full_pass_host_share",
        "share of host time",
        "lower",
        "timing",
        "timing",
        "time inside full passes there, within steps and by the clock of host time / host time of "
        "all steps",
        "gc.callbacks",
    ),
    Metric(
        "gc_pause_preempted",
        "share of pauses",
        "neither",
        "timing",
        "timing",
        "of gc_pause_total, the share in which the collecting thread had no core; null without "
        "pauses",
        "time.thread_time",
    ),
    Metric(
        "gc_attributed_gaps",
        "share of gaps",
        "neither",
        "timing",
        "timing",
        "of the steps longer than twice the median, the share that overlaps a collection",
        "docs/method.md",
    ),
    Metric(
        "gc_effect",
        "share",
        "lower",
        "timing",
        "timing",
        "host time per step / that of the same cell with the collector disabled - 1, paired "
        "by round: what the collector costs altogether, not only its pauses",
        "docs/method.md",
    ),
    Metric(
        "tracked_peak_per_step",
        "objects",
        "lower",
        "exact",
        "tracked",
        "most objects alive at the end of a phase that the step has made and the collector "
        "tracks, those from free lists included, collector off; median over full steps",
        "gc.get_objects",
        0.002,
        8,
        noun="peak of tracked objects in a step",
        counted_as="live objects/step",
    ),
    Metric(
        "tracked_survivors_per_step",
        "objects",
        "lower",
        "exact",
        "tracked",
        "rise of the number of tracked objects per step, from the first full step counted to "
        "the last",
        "gc.get_objects, gc.get_freeze_count",
        0.0,
        0.05,
        noun="tracked objects that a step leaves",
        counted_as="objects left behind/step",
    ),
    Metric(
        "tracked_allocations_per_step",
        "objects",
        "lower",
        "exact",
        "opcodes",
        "sum of the rises of gc.get_count()[0] from bytecode to bytecode, mean per step; what "
        "lives and dies inside one C call it cannot see",
        "sys.settrace, sys.monitoring",
        0.002,
        8,
        counted_as="tracked objects made/step",
    ),
    Metric(
        "memory_peak_per_step",
        "B",
        "lower",
        "exact",
        "memory",
        "memory of Python and NumPy at a step's peak less the least before it, looked at when "
        "the step and its phases begin, free lists empty; median over full steps",
        "tracemalloc",
        0.005,
        512,
        counted_as="at a step's peak",
    ),
    Metric(
        "memory_kept_per_step",
        "B",
        "lower",
        "exact",
        "memory",
        "rise of that memory per step, from the first full step to the last",
        "tracemalloc",
        0.002,
        16,
        counted_as="kept/step",
    ),
    Metric(
        "allocated_blocks_kept_per_step",
        "blocks",
        "lower",
        "exact",
        "memory",
        "rise of the number of blocks in Python's allocator per step, one or two a small "
        "object, from the first full step to the last, free lists empty",
        "sys.getallocatedblocks",
        0.0,
        0.5,
        counted_as="blocks kept/step",
    ),
    Metric(
        "leaked_objects_per_step",
        "objects",
        "lower",
        "exact",
        "leaks",
        "tracked objects once all requests have gone and all is collected, less those when the "
        "window opened / steps; in the process that serves the requests",
        "gc.get_objects",
        0.0,
        0.05,
        counted_as="leaked objects/step",
    ),
    Metric(
        "leaked_blocks_per_step",
        "blocks",
        "lower",
        "exact",
        "leaks",
        "the same of the blocks in Python's allocator: objects that the collector does not "
        "track, such as numbers and strings, are in them",
        "sys.getallocatedblocks",
        0.0,
        0.5,
        counted_as="leaked blocks/step",
    ),
    *(
        Metric(
            f"leaked_bytes_per_{of}",
            "B",
            "lower",
            "exact",
            "leaks",
            definition,
            "tracemalloc",
            0.005,  # where a cache is to grow, a container more or less has moved it by 0.12 %
            0.5,
            counted_as=f"leaked/{of}",
        )
        for of, definition in (
            ("step", "bytes that a step of up to 16 small requests leaves for good"),
            ("request", "the same of a request"),
            ("block", "the same of a block of the KV cache"),
        )
    ),
    Metric(
        "cyclic_garbage_per_step",
        "objects",
        "lower",
        "exact",
        "leaks",
        "objects that only a collection could free / steps",
        "gc.get_stats",
        0.0,
        0.05,
        counted_as="objects of cyclic garbage/step",
    ),
    Metric(
        "explicit_collections",
        "collections",
        "lower",
        "exact",
        "leaks",
        "collections in the window, all generations, that the program called for by hand; "
        "automatic ones are off",
        "gc.callbacks",
        0.0,
        0.0,
        counted_as="collections by hand",
    ),
    Metric(
        "collector_setting_calls",
        "calls",
        "lower",
        "exact",
        "leaks",
        "calls of gc.freeze, unfreeze, set_threshold, disable and enable while the engine is "
        "built, warms up and serves; in the process that serves the requests",
        "gc",
        0.0,
        0.0,
        counted_as="calls that set the collector",
    ),
    Metric(
        "bytecodes_per_request_step",
        "bytecodes",
        "lower",
        "exact",
        "opcodes",
        "bytecodes executed in a step, in asking before it whether requests are left and in "
        "reading streams after it / rows in it, over the traced steps",
        "sys.settrace, sys.monitoring",
        0.005,
        0.02,
        counted_as="bytecodes per request and step",
    ),
    Metric(
        "instructions_per_request_step",
        "instructions",
        "lower",
        "exact",
        "instructions",
        "machine instructions to add and serve requests / rows of all steps",
        "callgrind",
        0.005,
        counted_as="machine instructions per request and step",
    ),
    Metric(
        "bytecodes_per_add",
        "bytecodes",
        "lower",
        "exact",
        "opcodes",
        "bytecodes executed in add_request, mean per request",
        "sys.settrace, sys.monitoring",
        0.002,
        2,
        when="add",
        counted="bytecodes",
        counted_as="bytecodes to add a request",
    ),
    Metric(
        "bytecodes_per_finish",
        "bytecodes",
        "lower",
        "exact",
        "opcodes",
        "bytecodes to serve one request more, but for its decode steps: to admit it, compute its "
        "prompt, end it and take its tokens, mean per request",
        "docs/method.md",
        0.002,
        2,
        when="finish",
        counted="bytecodes",
        counted_as="bytecodes to admit and finish a request",
    ),
    Metric(
        "bytecodes_per_abort",
        "bytecodes",
        "lower",
        "exact",
        "opcodes",
        "bytecodes to abort a running request, and those that the next 3 steps execute more "
        "than without it, mean per request",
        "docs/method.md",
        0.002,
        2,
        when="abort",
        counted="bytecodes",
        counted_as="bytecodes to abort a request",
    ),
    Metric(
        "bytecodes_per_preempt",
        "bytecodes",
        "lower",
        "exact",
        "opcodes",
        "bytecodes that a step which preempts executes more than the next of as many rows, mean "
        "per request preempted",
        "docs/method.md",
        0.002,
        2,
        when="preempt",
        counted="bytecodes",
        counted_as="bytecodes to preempt a request",
    ),
    *(
        Metric(
            f"bytecodes_per_{part}",
            "bytecodes",
            "lower",
            "exact",
            "grid",
            f"bytecodes {definition}",
            "docs/method.md",
            0.005,
            least_change,
            when=part,
            counted_as=f"bytecodes {counted_as}",
        )
        for part, (definition, least_change, counted_as) in _OF_A_PART.items()
    ),
    Metric(
        "cost_model_rest",
        "",
        "neither",
        "exact",
        "grid",
        "of the step that is fitted worst the share that the seven parts do not explain",
        "docs/method.md",
    ),
    Metric(
        "allocations_per_add",
        "objects",
        "lower",
        "exact",
        "opcodes",
        "sum of the rises of gc.get_count()[0] from bytecode to bytecode in add_request, from "
        "empty free lists on, mean per request",
        "sys.settrace, sys.monitoring",
        0.002,
        0.5,
        when="add",
        counted="allocations",
        counted_as="tracked objects to add a request",
    ),
    Metric(
        "allocations_per_finish",
        "objects",
        "lower",
        "exact",
        "opcodes",
        "the same, for what bytecodes_per_finish is of",
        "docs/method.md",
        0.002,
        0.5,
        when="finish",
        counted="allocations",
        counted_as="tracked objects to admit and finish a request",
    ),
    Metric(
        "allocations_per_abort",
        "objects",
        "lower",
        "exact",
        "opcodes",
        "the same, for what bytecodes_per_abort is of",
        "docs/method.md",
        0.002,
        0.5,
        when="abort",
        counted="allocations",
        counted_as="tracked objects to abort a request",
    ),
    Metric(
        "allocations_per_preempt",
        "objects",
        "lower",
        "exact",
        "opcodes",
        "the same, for what bytecodes_per_preempt is of",
        "docs/method.md",
        0.002,
        0.5,
        when="preempt",
        counted="allocations",
        counted_as="tracked objects to preempt a request",
    ),
    Metric(
        "tracked_heap",
        "objects",
        "neither",
        "exact",
        "counts",
        "objects the collector tracks when the window opens, frozen ones included",
        "gc.get_objects",
        noun="objects on the heap",
    ),
    Metric(
        "full_pass_per_object",
        "s",
        "lower",
        "timing",
        "timing",
        "a full collection before the window / objects it visits",
        "docs/method.md",
    ),
    Metric(
        "handoff_bytes",
        "B",
        "lower",
        "exact",
        "tracked",
        "memory of a step's tokens in their representation, padding included, mean per step",
        "sys.getsizeof, ndarray.nbytes",
        0.005,
        64,
        counted_as="per hand-off",
    ),
    Metric(
        "wire_bytes_per_step",
        "B",
        "lower",
        "exact",
        "timing",
        "bytes across the worker boundary, both ways, mean per step",
        "docs/engines.md",
        0.005,
        64,
        counted_as="over the wire/step",
    ),
    Metric(
        "wire_codec_per_step",
        "s",
        "lower",
        "timing",
        "timing",
        "time to encode and decode a step and its tokens, at the scheduler's end and at that of "
        "a rank, mean per step",
        "docs/wires.md",
    ),
    Metric(
        "wire_encode_per_step",
        "s",
        "lower",
        "timing",
        "timing",
        "time to encode the step in the scheduler's process, once for all ranks, mean per step",
        "docs/wires.md",
    ),
    Metric(
        "wire_decode_per_step",
        "s",
        "lower",
        "timing",
        "timing",
        "time to decode its tokens there, mean per step",
        "docs/wires.md",
    ),
    Metric(
        "wire_rank_decode_per_step",
        "s",
        "lower",
        "timing",
        "timing",
        "time to decode the step in the ranks' processes, all together, mean per step",
        "docs/wires.md",
    ),
    Metric(
        "wire_rank_encode_per_step",
        "s",
        "lower",
        "timing",
        "timing",
        "time to encode its tokens in the first rank's process, mean per step",
        "docs/wires.md",
    ),
    Metric(
        "wire_spin_per_step",
        "s",
        "lower",
        "timing",
        "timing",
        "CPU time of all processes spent looking for messages that had not come yet, mean per step",
        "docs/wires.md",
    ),
    *(
        each
        for name, where, whose in _CROSSING
        for each in (
            Metric(
                f"{name}_bytes_per_step",
                "B",
                "lower",
                "exact",
                "wire",
                f"message of a step {where}, without what frames it{whose}, median over steps (of "
                "two, the smaller)",
                "vLLM #6241",
                0.005,
                16,
            ),
            Metric(
                f"{name}_bytes_first",
                "B",
                "lower",
                "exact",
                "wire",
                f"the same of the first step {where}",
                "vLLM #6241",
                0.005,
                16,
            ),
            Metric(
                f"{name}_bytes_last",
                "B",
                "lower",
                "exact",
                "wire",
                f"the same of the last step {where}",
                "vLLM #6241",
                0.005,
                16,
            ),
            *(
                Metric(
                    f"{name}_bytes_{part}",
                    "B",
                    "lower",
                    "exact",
                    "wire",
                    f"of {name}_bytes_per_step, bytes of {whole}; the parts add up to it",
                    "pickletools, or the wire itself",
                    0.005,
                    16,
                )
                for part, whole in _PARTS.items()
            ),
            Metric(
                f"{name}_edit_distance",
                "B",
                "lower",
                "exact",
                "wire",
                f"fewest bytes to insert, delete or replace that make of a step's message {where} "
                "the next one, median over pairs but the first; one pair in 7 where messages are "
                "longer than 64 KiB, none above 1 MiB",
                "Levenshtein distance, by rapidfuzz",
                0.005,
                4,
            ),
            Metric(
                f"{name}_edit_distance_first",
                "B",
                "lower",
                "exact",
                "wire",
                f"the same of the first two messages {where}",
                "Levenshtein distance, by rapidfuzz",
                0.005,
                4,
            ),
        )
    ),
    Metric(
        "device_late",
        "share",
        "lower",
        "timing",
        "timing",
        "modelled waits: sum of overrun / sum of modelled step time; over 1 % the trial is invalid",
        "docs/method.md",
    ),
    Metric(
        "device_idle_share",
        "share of wall",
        "lower",
        "timing",
        "timing",
        "1 - time that the device was at a step, as it says or is modelled, / wall time of the "
        "window; of devices whose steps take time",
        "docs/output-processing.md",
    ),
    Metric(
        "device_time_per_step",
        "s",
        "neither",
        "timing",
        "timing",
        "time that the device was at a step, mean per step; of real devices alone, as the next "
        "five",
        "docs/engines.md",
    ),
    Metric(
        "achieved_bandwidth",
        "B/s",
        "higher",
        "timing",
        "timing",
        "bytes that the steps must move (weights once a step, keys and values of every "
        "context, logits twice) / the device's time",
        "docs/engines.md",
    ),
    Metric(
        "achieved_bandwidth_share",
        "share",
        "higher",
        "timing",
        "timing",
        "the same / the rate at which the device copies its own memory, sustained after the window",
        "docs/engines.md",
    ),
    Metric(
        "achieved_flops",
        "FLOP/s",
        "higher",
        "timing",
        "timing",
        "operations that the steps need / the device's time",
        "docs/engines.md",
    ),
    Metric(
        "achieved_flops_share",
        "share",
        "higher",
        "timing",
        "timing",
        "the same / the rate of a large matrix product, sustained likewise",
        "docs/engines.md",
    ),
    Metric(
        "achieved_serial_share",
        "share",
        "higher",
        "timing",
        "timing",
        "least time for matrix products, then attention, then logits, at these two rates / the "
        "device's time",
        "docs/engines.md",
    ),
    Metric(
        "peak_rss",
        "B",
        "lower",
        "timing",
        "timing",
        "largest resident set of the engine's process",
        "getrusage",
    ),
)

METRICS: dict[str, Metric] = {metric.name: metric for metric in _TABLE}

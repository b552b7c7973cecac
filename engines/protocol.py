"""What every engine is given and what it answers: plain data, no workload and no harness."""

import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Int32Array = NDArray[np.int32]
Int64Array = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


class FinishReason(IntEnum):
    """Why a request ended, with vLLM's names."""

    STOP = 0
    LENGTH = 1
    ABORT = 2


PHASES = ("schedule", "launch", "wait", "handoff", "process")
"""The parts of a step, in the order in which an inline step goes through them."""


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """What a request asks of its output; names and meanings are vLLM's.

    Before ``min_tokens`` tokens nothing but ``max_tokens`` ends it. ``stop``: strings that do,
    left out of the text unless ``include_stop_str_in_output``; their tokens stay. ``sampling``, of
    a device with a model: how its tokens are drawn, None for as the engine draws.
    """

    max_tokens: int
    min_tokens: int = 0
    stop_token_ids: tuple[int, ...] = ()
    stop: tuple[str, ...] = ()
    include_stop_str_in_output: bool = False
    ignore_eos: bool = True
    sampling: "Sampling | None" = None


class Sampling(NamedTuple):
    """``temperature`` 0 is greedy; ``top_k`` 0 and ``top_p`` 1 leave all tokens; as in vLLM.

    Requests of one ``seed`` and the same logits draw the same tokens; those without, -1, others.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = -1


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """How an in-process engine is built; every field is plain data, so it can cross a process.

    ``max_num_seqs``, ``max_num_batched_tokens``, ``max_model_len``, ``block_size``,
    ``num_gpu_blocks_override`` (0: what memory holds), ``enable_prefix_caching``,
    ``scheduling_policy`` and ``num_scheduler_steps`` mean what they mean in vLLM (the last in its
    V0). ``scheduler``: "live", or "replayed": it decides what it decided before. An empty
    ``device``, ``device_profile`` or
    ``representation`` is the engine's to fill in; ``model`` is a name or a path, ``tokenizer``
    a ``tokenizer.json`` ("": the shipped one). ``num_accepted`` is the table of tokens a decode
    step yields; which entry a request takes depends on (seed, request, position) alone. ``seed``
    decides the tokens, and random weights. ``eos_token_id`` is the tokenizer's, -1 for none; a
    model that runs ends a text by its own config instead. ``logprobs``: "none", or a shape and how
    many, such as "lists:5". Of a device with a model: ``dtype``, ``enforce_eager`` and
    ``tensor_parallel_size`` as in vLLM; ``sampling``: "greedy", or a temperature and perhaps top-k
    and top-p, "0.8:50:0.9". ``wire``: a format, perhaps "+" and how it gets there; ``wire_spin``:
    seconds that an end may look for a message before it parks, or "auto".
    ``features``: what each request asks of the engine beside, "none" or names with "+" between.
    ``front_end``: vLLM's, "llm" or "async"; ``log_stats``: whether it keeps statistics. ``setup``:
    "lean", or "shipped" where the engine's own defaults stand in the place of
    ``output_processing`` and ``enable_prefix_caching``, and it keeps statistics; "served" the same
    behind its API server's code.
    ``retain_outputs``: of outputs that no client gets, because they stay in a process of the
    engine: whether a request's are kept there until it ends.
    """

    max_num_seqs: int
    max_model_len: int
    max_num_batched_tokens: int = 8192
    block_size: int = 16
    num_gpu_blocks_override: int = 0
    enable_prefix_caching: bool = False
    scheduler: str = "live"
    scheduling_policy: str = "fcfs"
    num_scheduler_steps: int = 1
    model: str = "opt-125m"
    dtype: str = "auto"
    sampling: str = "greedy"
    enforce_eager: bool = False
    tensor_parallel_size: int = 1
    device: str = "modelled"
    device_profile: str = "opt-125m-h200-measured"
    representation: str = "list_of_lists"
    delivery: str = "per_request"
    output_processing: str = "inline"
    worker: str = "in-process"
    wire: str = "pickle"
    wire_spin: str = "auto"
    front_end: str = "llm"
    log_stats: bool = False
    engine_core: str = "in-process"
    setup: str = "lean"
    seed: int = 0
    num_accepted: tuple[int, ...] = (1,)
    vocab_size: int = 50272
    eos_token_id: int = 2
    detokenizer: str = "none"
    tokenizer: str = ""
    logprobs: str = "none"
    features: str = "none"
    request_streams: str = "none"
    retain_outputs: bool = False


class Launch(NamedTuple):
    """Where an engine's trials run: the interpreter, and what to set in its environment."""

    interpreter: str
    environment: dict[str, str]


@dataclass(frozen=True, slots=True)
class Traits:
    """What an engine can do as it is configured; one that says nothing of itself claims nothing.

    ``is_exact``: counts repeat to the digit: no clock, no thread, no second process. ``takes_gpu``:
    it runs on one, which may have no room for another until it says so (`FIT`). ``can_pause``:
    nothing of it goes on while it is not asked for the next step. ``can_fork``: it can be built in
    a fork of an interpreter that has its heap: all of it is in one process and thread, and it
    leaves the collector alone; ``preload`` is the module that all such forks have in common,
    whatever their parts, "" for none. ``outlives_fork``: once it stands, forks of its process can
    go on with it; libuv's event loop aborts in them. ``needs_rehearsal``: it must have served the
    same requests once, step for step, to be measured. ``has_messages``: something crosses to
    workers that the trial's process can see. ``trace_every``: a gate traces a random one of so many
    steps: all would take minutes. ``ways``: settings, by axis, that between them run what an
    engine does not run as configured; as many however it is sized.
    """

    is_exact: bool = False
    takes_gpu: bool = True
    can_pause: bool = False
    can_fork: bool = False
    preload: str = ""
    outlives_fork: bool = True
    needs_rehearsal: bool = False
    has_messages: bool = False
    trace_every: int = 8
    ways: tuple[dict[str, str | int], ...] = ()


SCRIPT = "gcbench"
"""The `StepEngine.script` that all of gcbench's own engines follow."""


class ContradictionError(ValueError):
    """Parts of a configuration that are each known do not go together."""


class TreeError(ValueError):
    """A tree that was given as a release and holds none; ``why`` says what is wrong with it."""

    def __init__(self, tree: str, why: str) -> None:
        super().__init__(f"--release {tree}: {why}")
        self.why = why


class Releases(Protocol):
    """Versions of an engine, each of which can be had and is then a ``release``, beside trees.

    Whatever cannot be raises ValueError: what, and what there is.
    """

    PINNED: str
    """Where none is named."""

    def known_versions(self) -> list[str]:
        """All that can be had, perhaps also some that are too old."""
        ...

    def check_version(self, text: str, known: Sequence[str] = ()) -> str:
        """A release in the usual spelling, one of ``known`` if any are given."""
        ...

    def within(self, text: str, known: Sequence[str], *, last_patches: bool = False) -> list[str]:
        """Those of a range, oldest first; of each minor version perhaps the last alone."""
        ...

    def prepare_release(self, release: str, say: Callable[[str], None]) -> Path:
        """Make ready a version or a tree; the folder that its package is in. ``say`` gets a
        sentence at each long step.
        """
        ...

    def own_label(self, release: str) -> str:
        """The version, or what a tree calls itself."""
        ...


class EngineClass(Protocol):
    """What an engine answers before there is one, in a process that may lack its packages."""

    has_wait_hook: bool
    """Whether `EngineProcess.while_device_busy` is called."""
    package: str
    """The package whose source tree a ``release`` may name, as a path below that tree."""
    axes: frozenset[str]
    """Which of the axes that not every engine has it takes; of the others it has the default."""
    own_values: Mapping[str, tuple[str, ...]]
    """By axis, the names of its own where those that gcbench registers are not its."""
    shapes: tuple[tuple[str, str], ...]
    """Representations and deliveries that between them go through its code."""

    @staticmethod
    def complete(config: EngineConfig) -> EngineConfig:
        """Fill in what was left open.

        Raises ValueError where a part is unknown or a number impossible, ContradictionError, in
        one sentence, where parts do not go together: a grid leaves that combination out.
        """
        ...

    @staticmethod
    def traits(config: EngineConfig) -> Traits:
        """What it can do; of a configuration of which lengths and tokens need not be known."""
        ...

    @staticmethod
    def launch(python: str, release: str) -> Launch:
        """Where its trials run. Raises ValueError where it cannot be run at all."""
        ...

    @staticmethod
    def releases() -> Releases | None:
        """Its versions; None: it has none but the commits of its repository."""
        ...

    @staticmethod
    def prepare(release: str) -> None:
        """Make on this machine, once, what `launch` needs of a release. Raises ValueError."""
        ...

    def __call__(self, config: EngineConfig) -> "StepEngine":
        """Build it."""
        ...


class Delivered(NamedTuple):
    """What the consumer gets of one step's tokens. Arrays are the engine's own until the next step.

    ``request_index`` int64 ``[num_rows]``: the caller's number of each request that got tokens.
    ``num_tokens`` int32 ``[num_rows]``: how many. ``outputs``: one object a row, or empty
    when the delivery makes none. ``finished`` int64 ``[num_finished]`` and ``finish_reasons``
    int8 ``[num_finished]`` name those that ended with it. ``processing_ns``: how long output
    processing took; 0: nobody says. ``ready_ns``: when that was done, by `time.perf_counter_ns`,
    where it was not in this call; else 0.
    """

    request_index: Int64Array
    num_tokens: Int32Array
    outputs: Sequence[Any]
    finished: Int64Array
    finish_reasons: NDArray[np.int8]
    processing_ns: int = 0
    ready_ns: int = 0


class StepOutput(NamedTuple):
    """What one call of `StepEngine.step` has done.

    ``delivered``: the steps whose outputs it brought, the oldest first; none, where outputs come
    later. ``sampled``: tokens of the step that came from the device, in the representation at
    hand, valid until the next step. ``device_ns``: time the runner was blocked on its device, of
    which ``late_ns`` after a modelled deadline; ``device_seconds``: how long the device says that
    the step took, a modelled one that it was to take.
    """

    delivered: Sequence[Delivered]
    sampled: Any = None
    device_ns: int = 0
    late_ns: int = 0
    device_seconds: float = 0.0

    @property
    def num_rows(self) -> int:
        """Outputs that it brought: a request counts once a step."""
        return sum(len(each.request_index) for each in self.delivered)


class EngineProcess(Protocol):
    """One process of an engine, as a callable given to `StepEngine.collective_rpc` sees it."""

    role: str
    while_device_busy: Callable[[], object] | None = None
    """Called once a step between the launch and the wait for the device."""


DIRECTIONS = ("scheduler_output", "model_runner_output")
"""What crosses between scheduler and workers, by vLLM's names: there, and back."""


Setting = str | int | bool

NOT_AS_DEPLOYED = "not_as_deployed"
"""In `EngineState.found`: in what, in a sentence, it runs another branch than where it is deployed;
a report says so first.
"""


FIT = "fit_on_device"
"""In `EngineState.found`: how many such engines the memory of its device holds, as far as was free
when it was built.
"""


class EngineState(NamedTuple):
    """How an engine runs, read off its parts once they are there; named as in `EngineConfig`.

    ``found``: every switch as it is in force, and classes worth knowing. ``asked``: what some of
    them were asked to be; an engine for which the two disagree must not be measured.
    """

    found: dict[str, Setting]
    asked: dict[str, Setting]

    def differences(self) -> list[str]:
        """Each switch that is not as asked, in words."""
        return [
            f"{name} is {self.found.get(name)}, not {wanted}"
            for name, wanted in self.asked.items()
            if self.found.get(name) != wanted
        ]


class ReadyDevice(NamedTuple):
    """``num_fit``: how many engines of its size its memory holds, itself among them, 0 where nobody
    says; ``seconds``: what each stage of building it took.
    """

    num_fit: int = 0
    seconds: Mapping[str, float] = {}


class StepEngine(EngineProcess, Protocol):
    """An engine that is stepped from this process, in vLLM's verbs.

    What has a body here is what an engine that inherits from this need not write.
    """

    vocab_size: int
    """Token ids of a prompt are below it."""
    script: str = ""
    """What its tokens follow: engines of one script give the same ones in each run. `SCRIPT`: a
    function of (seed, request, position); "": a model makes them."""
    clock: Callable[[], int] = time.perf_counter_ns
    """Read between the phases of a step."""
    phase_stamps: list[int]
    """``clock()`` before the last step's first phase and after each, in the order of `PHASES`.

    An engine that does not tell them apart has all of a step in the first."""
    wire_bytes: int = 0
    """Bytes that have crossed to and from worker processes so far."""
    build_seconds: Mapping[str, float] = {}
    """What stages of building it took, in their order, as far as it tells them apart."""

    @abstractmethod
    def add_request(
        self,
        request_index: int,
        prompt_token_ids: Int32Array,
        params: SamplingParams,
        priority: int = 0,
    ) -> None:
        """Queue a request; a smaller ``priority`` goes first where the engine heeds it.

        Raises ValueError where it can never be served.
        """
        ...

    @abstractmethod
    def abort_request(self, request_index: int) -> None:
        """End a request now and forget it; unknown or finished ones are left alone, as in vLLM."""
        ...

    @abstractmethod
    def has_unfinished_requests(self) -> bool:
        """Whether another step has anything to do."""
        ...

    @abstractmethod
    def step(self) -> StepOutput:
        """Run one step. Raises EngineDeadError where a process of the engine has died."""
        ...

    @abstractmethod
    def output_token_ids(self, request_index: int) -> Int32Array:
        """A finished request's tokens, int32 ``[num_output]``; the engine then forgets it."""
        ...

    def output_text(self, request_index: int) -> str:
        """A finished request's text, until its tokens are taken.

        Raises ValueError where there is none.
        """
        raise ValueError("no text: this engine makes none; use --axis detokenizer=none")

    def collective_rpc(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Call ``function(process, *args)`` in each process of the engine, its own first."""
        return [function(self, *args)]

    def shutdown(self) -> None:
        """End the engine's processes; safe to call twice."""

    def read_back(self) -> EngineState:
        """How it runs, which somebody else's code may decide otherwise than it was asked; between
        steps. Raises EngineDeadError where a process has died.
        """
        return EngineState({}, {})

    def handoff_bytes(self, sampled: Any) -> int | None:
        """Memory of `StepOutput.sampled`, padding and Python objects included; None: unknown."""
        return None

    def scheduler_stats(self) -> dict[str, int]:
        """``num_preemptions``, ``prefix_cache_queries`` and ``prefix_cache_hits`` (tokens) so far;
        what the engine does not say is not there.
        """
        return {}

    def wire_seconds(self) -> dict[str, float]:
        """What the wire between scheduler and ranks has taken so far, in seconds: ``encode`` (of
        steps) and ``decode`` (of tokens) in the scheduler's process, ``rank_decode`` and
        ``rank_encode`` in the ranks' together, ``spin`` of CPU time; empty where none is timed.
        """
        return {}

    def device_stats(self) -> dict[str, float]:
        """What the device has done so far and can sustain: ``bytes`` and ``flops`` that its steps
        could not do without, of these ``linear_bytes`` and ``linear_flops`` of matrix products and
        ``attention_bytes`` and ``attention_flops``; and from the second call on
        ``copy_bytes_per_second`` and ``matmul_flops_per_second``, measured on it there and then
        for as long as has passed since the call before, for half a second at most, and if its
        memory has room for that. Empty where there is no arithmetic.
        """
        return {}

    def show_messages(self, to: Callable[[str, bytes], object] | None) -> None:
        """Call ``to(direction, message)`` for each from now on that crosses between scheduler and
        workers, a direction of `DIRECTIONS`; None: no more.

        Raises ValueError where nothing crosses, or not in this process.
        """
        raise ValueError("this engine does not show what crosses to its workers")

    def message_fields(self, direction: str, message: bytes) -> dict[str, int]:
        """Bytes of one by the path of the field that they are for; all of them together."""
        raise ValueError("this engine does not say what its messages are for")


class StageCost(NamedTuple):
    """What a stage of the step took in one process, by what a `StageMeter` counts."""

    role: str
    stage: str
    calls: int
    amount: int


class StageMeter(Protocol):
    """Counts what functions take, by the stage that each is."""

    def run(self, stage: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call it and count it as that stage's."""
        ...

    def totals(self, stages: Mapping[str, str], own_files: tuple[str, ...]) -> dict[str, int]:
        """What was counted, by stage, perhaps with the whole process under a name of its own.

        ``stages``: those of functions by their qualified names. ``own_files``: what they contain
        is to be left out.
        """
        ...


@runtime_checkable
class HasStages(Protocol):
    """An engine each of whose processes can say what the stages of its steps take there."""

    def begin_stages(self, meter: Callable[[], StageMeter]) -> None:
        """Count from now on, by a meter of its own in each process."""
        ...

    def end_stages(self) -> list[StageCost]:
        """Count no more; what was counted."""
        ...


class RequestStream(Protocol):
    """A request's own stream of outputs, as vLLM's `RequestOutputCollector`."""

    def get_nowait(self) -> Any:
        """What has come since it was last asked, or None."""
        ...


@runtime_checkable
class HasStreams(Protocol):
    """An engine whose outputs can be taken from a stream for each request."""

    def request_stream(self, request_index: int) -> RequestStream:
        """That of a request that runs. Raises ValueError where requests have none."""
        ...


class StreamEngine(Protocol):
    """An engine behind a network: requests go out, and answers arrive by themselves.

    A request is a number, known beforehand. What is seen of answers is their bytes and moments.
    """

    on_end: Callable[[int], object]
    """Called with a request of which nothing more will come, whatever became of it."""

    @property
    def num_in_flight(self) -> int:
        """Requests that were added and have not ended."""
        ...

    def add_request(self, request_index: int) -> None:
        """Send it now."""
        ...

    def abort_request(self, request_index: int) -> None:
        """Break it off; unknown or finished ones are left alone."""
        ...

    def abort_late(self) -> None:
        """Break off what has been under way for longer than a request may."""
        ...


class EngineDeadError(RuntimeError):
    """A process of the engine ended without being asked to."""

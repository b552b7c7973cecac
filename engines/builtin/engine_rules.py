"""What the built-in engine answers before there is one: what goes together, and what it can do."""

from collections.abc import Mapping
from dataclasses import replace

from engines.builtin.delivery.choice import check_delivery, delivery_contradiction, load_delivery
from engines.builtin.device.choice import complete_device, device_class
from engines.builtin.output_processing import OutputProcessing
from engines.builtin.registries import (
    OUTPUT_PROCESSING,
    REPRESENTATIONS,
    SCHEDULERS,
    SCHEDULING_POLICIES,
    WORKERS,
)
from engines.builtin.release import launch_builtin
from engines.builtin.scheduler import Scheduler
from engines.builtin.wire.names import asked_seconds, parse_wire
from engines.builtin.worker import Worker
from engines.protocol import ContradictionError, EngineConfig, Launch, Traits


class EngineRules:
    """An `EngineClass` but for building one; in a process that need not have torch."""

    has_wait_hook = True
    package = "engines"
    axes = frozenset(
        {
            "dtype",
            "sampling",
            "enforce_eager",
            "tensor_parallel",
            "device_profile",
            "delivery",
            "max_num_batched_tokens",
            "num_gpu_blocks_override",
            "prefix_caching",
            "scheduler",
            "scheduling_policy",
            "detokenizer",
            "tokenizer",
            "logprobs",
            "request_streams",
            "output_processing",
            "num_scheduler_steps",
            "worker",
            "wire",
            "wire_spin",
        }
    )
    own_values: Mapping[str, tuple[str, ...]] = {}
    shapes = (("list_of_lists", "per_request"), ("flat_arrays", "columnar"))

    @staticmethod
    def complete(config: EngineConfig) -> EngineConfig:
        """Fill in what was left open; the profile is the model's on an H200.

        Raises ValueError where a part is unknown or a number impossible, ContradictionError where
        parts do not go together.
        """
        representation = config.representation or "list_of_lists"
        config = replace(complete_device(config), representation=representation)
        _check(config)
        if why := _contradiction(config):
            raise ContradictionError(why)
        return config

    @staticmethod
    def traits(config: EngineConfig) -> Traits:
        """What device, worker, scheduler and output processing leave possible."""
        device = device_class(config)
        mode: type[OutputProcessing] = OUTPUT_PROCESSING.load(config.output_processing)
        scheduler: type[Scheduler] = SCHEDULERS.load(config.scheduler)
        is_here = config.worker == "in-process"
        # A step under way between two steps goes on, if steps take any time.
        goes_on = device.needs_profile and bool(mode.num_under_way)
        can_pause = mode.is_exact and not device.has_model and not goes_on
        return Traits(
            is_exact=config.device == "null" and is_here and mode.is_exact,
            takes_gpu=device.takes_gpu,
            can_pause=can_pause,
            can_fork=is_here and can_pause,
            preload="engines.builtin.worker.runner",
            needs_rehearsal=scheduler.needs_rehearsal,
            has_messages=not is_here,
            ways=_WAYS,
        )

    @staticmethod
    def launch(python: str, release: str) -> Launch:
        """In this interpreter or the one asked for; ``release`` is a tree of gcbench's."""
        return launch_builtin(python, release)

    @staticmethod
    def releases() -> None:
        """None but commits."""

    @staticmethod
    def prepare(release: str) -> None:
        """A tree of gcbench's is there or not."""


_COLUMNS: dict[str, str | int] = {"representation": "flat_arrays", "delivery": "columnar"}
_OBJECTS: dict[str, str | int] = {"delivery": "vllm_v1"}
_PROCESS: dict[str, str | int] = {"worker": "process"}
_WAYS: tuple[dict[str, str | int], ...] = (
    {"representation": "int_or_list"},
    {"representation": "list_of_arrays"},
    {"representation": "padded_arrays"},
    {"representation": "padded_arrays", "delivery": "columnar"},
    {"representation": "tensor"},
    _OBJECTS,
    {**_OBJECTS, "logprobs": "lists:2"},
    {**_OBJECTS, "logprobs": "arrays:2"},
    {**_OBJECTS, "detokenizer": "decode_stream"},
    {**_OBJECTS, "request_streams": "collector"},
    {**_COLUMNS, "detokenizer": "byte_table"},
    {**_COLUMNS, "logprobs": "arrays:2"},
    {**_COLUMNS, "request_streams": "collector"},
    {"prefix_caching": "on"},
    {"scheduling_policy": "priority"},
    {"num_scheduler_steps": 2},
    {"max_num_batched_tokens": 64},
    {"num_gpu_blocks_override": 64},
    {"scheduler": "replayed"},
    {"output_processing": "overlapped"},
    {"output_processing": "thread"},
    {"output_processing": "process"},
    {"device": "modelled"},
    _PROCESS,
    {"worker": "driver", "tensor_parallel": 2},
    *({**_PROCESS, "wire": wire} for wire in ("full", "pickle5", "msgpack", "msgpack-delta")),
    {**_PROCESS, "wire": "columns", "representation": "flat_arrays"},
    {**_PROCESS, "wire": "pickle5+shared-memory"},
    {**_PROCESS, "wire": "pickle5+gloo", "tensor_parallel": 2},
)
"""Each with what no other has; the device of a way is the one that is asked for, or named."""


def _check(config: EngineConfig) -> None:
    REPRESENTATIONS.load(config.representation)
    check_delivery(config)
    OUTPUT_PROCESSING.check(config.output_processing)
    WORKERS.check(config.worker)
    parse_wire(config.wire)
    asked_seconds(config)
    SCHEDULERS.check(config.scheduler)
    SCHEDULING_POLICIES.check(config.scheduling_policy)
    if config.max_num_seqs < 1:
        raise ValueError(f"batch size {config.max_num_seqs}: must be at least 1")
    if config.num_gpu_blocks_override < 0:
        raise ValueError(
            f"--axis num-gpu-blocks-override={config.num_gpu_blocks_override}: must be 0 or more"
        )
    if min(config.num_accepted, default=0) < 1:
        raise ValueError("num_accepted: every decode step must yield at least 1 token")
    if config.max_num_batched_tokens < (most := max(config.num_accepted)):
        raise ValueError(
            f"max_num_batched_tokens {config.max_num_batched_tokens}: a decode step of one "
            f"request takes {most}; raise it to at least that"
        )
    if config.num_scheduler_steps < 1:
        steps = config.num_scheduler_steps
        raise ValueError(f"--axis num-scheduler-steps={steps}: must be at least 1")
    if config.tensor_parallel_size < 1:
        raise ValueError(
            f"--axis tensor-parallel={config.tensor_parallel_size}: must be at least 1"
        )
    device_class(config).check(config)


def _contradiction(config: EngineConfig) -> str:
    columnar = load_delivery(config).needs_columns
    if columnar and not REPRESENTATIONS.load(config.representation).columnar:
        return (
            f"{config.delivery} delivery of {config.representation}: it has no columns; use "
            "--delivery per_request or an array representation"
        )
    if why := delivery_contradiction(config):
        return why
    if config.num_scheduler_steps > 1 and max(config.num_accepted) > 1:
        return (
            f"--axis num-scheduler-steps={config.num_scheduler_steps} and --axis "
            "tokens-per-step: a step "
            "of several passes has no drafts to verify, as in vLLM; leave one of the two out"
        )
    scheduler: type[Scheduler] = SCHEDULERS.load(config.scheduler)
    mode: type[OutputProcessing] = OUTPUT_PROCESSING.load(config.output_processing)
    if scheduler.needs_rehearsal and not mode.is_exact:
        return (
            f"--axis scheduler={config.scheduler} and --output-processing "
            f"{config.output_processing}: when an output is ready is a matter of time, so no "
            "two runs are scheduled alike; use inline or overlapped"
        )
    worker: type[Worker] = WORKERS.load(config.worker)
    return worker.contradiction(config)

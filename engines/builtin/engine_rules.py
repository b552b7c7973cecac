"""What the built-in engine answers before there is one: what goes together, and what it can do."""

from dataclasses import replace
from importlib import import_module

from engines.builtin.delivery.choice import check_delivery, load_delivery
from engines.builtin.delivery.choice import contradiction as delivery_contradiction
from engines.builtin.device.choice import complete_device, device_class
from engines.builtin.output_processing import OutputProcessing
from engines.builtin.registries import (
    OUTPUT_PROCESSING,
    REPRESENTATIONS,
    SCHEDULERS,
    SCHEDULING_POLICIES,
    WORKERS,
)
from engines.builtin.release import launch
from engines.builtin.scheduler import Scheduler
from engines.builtin.wire.names import asked_seconds, parse_wire
from engines.builtin.worker import Worker
from engines.protocol import EngineConfig, Launch


class EngineRules:
    """An `EngineClass` but for building one; in a process that need not have torch."""

    has_wait_hook = True
    package = "engines"
    shapes = (("list_of_lists", "per_request"), ("flat_arrays", "columnar"))

    @staticmethod
    def validate(config: EngineConfig) -> None:
        """Raise ValueError where a part is unknown or a number impossible."""
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
                f"--num-gpu-blocks-override {config.num_gpu_blocks_override}: must be 0 or more"
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
            raise ValueError(f"--num-scheduler-steps {steps}: must be at least 1")
        if config.tensor_parallel_size < 1:
            raise ValueError(f"--tensor-parallel {config.tensor_parallel_size}: must be at least 1")
        device_class(config).check(config)

    @staticmethod
    def complete(config: EngineConfig) -> EngineConfig:
        """Fill in what was left open; the profile is the model's on an H200."""
        representation = config.representation or "list_of_lists"
        return replace(complete_device(config), representation=representation)

    @staticmethod
    def is_exact(config: EngineConfig) -> bool:
        """Whether counts repeat to the digit: no clock, no second thread, no second process."""
        mode: type[OutputProcessing] = OUTPUT_PROCESSING.load(config.output_processing)
        return config.device == "null" and config.worker == "in-process" and mode.is_exact

    @staticmethod
    def is_alone(config: EngineConfig) -> bool:
        """Whether the device has room for no other engine beside this one."""
        return device_class(config).is_alone

    @staticmethod
    def can_pause(config: EngineConfig) -> bool:
        """Whether no step is under way between two steps, or none takes any time."""
        device = device_class(config)
        takes_time = device.needs_profile
        mode: type[OutputProcessing] = OUTPUT_PROCESSING.load(config.output_processing)
        if device.has_model or not mode.is_exact:
            return False
        return not takes_time or not mode.num_under_way

    @staticmethod
    def can_fork(config: EngineConfig) -> bool:
        """Whether it has no second process or thread, nor a model, whose arithmetic has some."""
        return config.worker == "in-process" and EngineRules.can_pause(config)

    @staticmethod
    def preload() -> None:
        """The runner, and torch with it."""
        import_module("engines.builtin.worker.runner")

    @staticmethod
    def needs_rehearsal(config: EngineConfig) -> bool:
        """Whether its scheduler does only what it has done before."""
        scheduler: type[Scheduler] = SCHEDULERS.load(config.scheduler)
        return scheduler.needs_rehearsal

    @staticmethod
    def has_messages(config: EngineConfig) -> bool:
        """Whether the runner is behind a wire."""
        return config.worker != "in-process"

    @staticmethod
    def launch(python: str, release: str) -> Launch:
        """In this interpreter or the one asked for; ``release`` is a tree of gcbench's."""
        return launch(python, release)

    @staticmethod
    def prepare(release: str) -> None:
        """A tree of gcbench's is there or not."""

    @staticmethod
    def contradiction(config: EngineConfig) -> str:
        """Why parts that are each known do not go together, in one sentence, or ""."""
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
                f"--num-scheduler-steps {config.num_scheduler_steps} and --tokens-per-step: a step "
                "of several passes has no drafts to verify, as in vLLM; leave one of the two out"
            )
        mode: type[OutputProcessing] = OUTPUT_PROCESSING.load(config.output_processing)
        if EngineRules.needs_rehearsal(config) and not mode.is_exact:
            return (
                f"--scheduler {config.scheduler} and --output-processing "
                f"{config.output_processing}: when an output is ready is a matter of time, so no "
                "two runs are scheduled alike; use inline or overlapped"
            )
        worker: type[Worker] = WORKERS.load(config.worker)
        if why := worker.contradiction(config):
            return why
        return ""

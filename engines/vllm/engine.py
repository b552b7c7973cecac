"""vLLM's `LLMEngine` behind `StepEngine`: front end and engine core, in one process or two."""

import shutil
import time
from collections.abc import Callable, Mapping
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, ClassVar

from engines.builtin.logprobs import parse_logprobs
from engines.pickle_fields import pickle_fields
from engines.prepared.launch import prepare_once
from engines.prepared.tokenizer_folder import make_tokenizer_folder
from engines.private_folder import private_folder
from engines.protocol import (
    PHASES,
    EngineConfig,
    EngineDeadError,
    EngineState,
    Int32Array,
    Releases,
    SamplingParams,
    StageCost,
    StageMeter,
    StepOutput,
)
from engines.vllm import stages
from engines.vllm.arguments import has_messages, may_be_async, set_up
from engines.vllm.async_front_end import AsyncFrontEnd
from engines.vllm.control import Control
from engines.vllm.device_log import DeviceLog
from engines.vllm.features import features_of, sampling_fields
from engines.vllm.gate import Gate
from engines.vllm.host_process import HERE
from engines.vllm.launch import launch_vllm
from engines.vllm.loop_front_end import LoopFrontEnd
from engines.vllm.outputs import Outputs
from engines.vllm.read_back import core_settings, core_settings_here, engine_state
from engines.vllm.releases import VLLM
from engines.vllm.scripted_time import script_time
from engines.vllm.served import ServedFrontEnd
from engines.vllm.settings import gate_path, set_environment
from engines.vllm.when_asked import compile_at_once, take_over


def _in_a_line(error: ValueError) -> str:
    """What is wrong, of all that pydantic says."""
    errors = getattr(error, "errors", None)
    return str(errors()[0]["msg"] if errors else error).removeprefix("Value error, ")


def _check_drafts_are_taken() -> None:
    """Raise ValueError where the release asks for drafts in a core of its own process alone.

    Under async scheduling it asks for none: they stay with the worker.
    """
    from vllm.v1.engine.core_client import InprocClient

    if "post_step" not in InprocClient.get_output.__code__.co_names:
        raise ValueError(
            "several tokens per step: this release of vLLM never asks for drafts where the engine "
            "core shares the front end's process; add --axis engine-core=process"
        )


class VllmEngine:
    """Drives vLLM as its own ``LLM`` class does, with outputs streamed as deltas.

    Whoever subclasses says by `engine_args` and `executor_class` what is to be built. Raises
    ValueError for what vLLM refuses, EngineDeadError where one of its processes has ended.
    """

    host_path: bool
    script: str
    vocab_size = 50257
    """GPT-2's: every shipped config has that many."""
    package = "vllm"
    axes = frozenset(
        {
            "device_profile",
            "max_num_batched_tokens",
            "num_gpu_blocks_override",
            "prefix_caching",
            "scheduling_policy",
            "output_processing",
            "worker",
            "engine_core",
        }
    )
    own_values: Mapping[str, tuple[str, ...]] = {}
    shapes = (("", "per_request"),)
    launch = staticmethod(launch_vllm)
    stages: ClassVar = {
        "LLMEngine.step": "front end",
        "AsyncFrontEnd.step": "event loop",
        "ServedFrontEnd.step": "event loop",
        "OpenAIServingCompletion.completion_stream_generator": "sse",
        "AsyncLLM.generate": "deliver",
        "MsgpackEncoder.encode_into": "serialise",
        "MsgpackDecoder.decode": "deserialise",
        "EngineCore.step": "engine core",
        "EngineCore.step_with_batch_queue": "engine core",
        "Scheduler.schedule": "schedule",
        "UniProcExecutor.execute_model": "worker",
        "UniProcExecutor.sample_tokens": "worker",
        "UniProcExecutor.collective_rpc": "worker",
        "Scheduler.update_from_output": "update",
        "OutputProcessor.process_outputs": "output processing",
        "Outputs.take": "client",
    }
    """Functions that begin a part of the step, of whatever release, by qualified name."""

    @staticmethod
    def releases() -> Releases:
        """Those on the package index."""
        return VLLM

    @staticmethod
    def prepare(release: str) -> None:
        """As `prepare_once`."""
        prepare_once(VLLM, release)

    def __init__(self, config: EngineConfig) -> None:
        config = set_up(config)
        set_environment(
            engine_core=config.engine_core,
            host_path=self.host_path,
            ranks=config.tensor_parallel_size,
        )
        self._config = config
        self._folder = private_folder("vllm")
        self.device_log_path = f"{self._folder}/device-log"
        self.tokenizer_folder = f"{self._folder}/tokenizer"
        self._device_log = DeviceLog(self.device_log_path, create=True)
        self._gate: Gate | None = None
        shape, num_logprobs = parse_logprobs(config.logprobs)
        self._num_logprobs = None if shape == "none" else num_logprobs
        self._adapters: dict[int, Any] = {}
        self._control = Control(self._folder)
        self._features = features_of(config)
        if self._features.has_grammar:
            self.script = ""  # tokens that no grammar takes are others
        self._outputs = Outputs(
            has_text=config.detokenizer != "none", has_samples=self._features.samples > 1
        )
        self._device = self._device_log.read()
        self._processing_ns = 0
        self._is_remote = config.engine_core == "process"
        HERE.role = "frontend" if self._is_remote else "engine"
        HERE.clock = time.perf_counter_ns
        HERE.while_device_busy = HERE.on_message = None
        try:
            self._engine = self._start(config)
            self._make_exact()
            self._time_output_processing()
            self._control.wait_for(self._other_roles(config))
            if self._is_remote:
                self._control.when_ended("engine", self._wake())
        except BaseException:
            self.shutdown()
            raise

    def _start(self, config: EngineConfig) -> Any:
        from vllm.engine.arg_utils import AsyncEngineArgs, EngineArgs
        from vllm.sampling_params import RequestOutputKind
        from vllm.sampling_params import SamplingParams as VllmSamplingParams
        from vllm.v1.engine.exceptions import EngineDeadError as VllmEngineDeadError
        from vllm.v1.engine.llm_engine import LLMEngine

        from engines.vllm.dialect import known_arguments
        from engines.vllm.executor import in_place_of_vllms

        self._sampling_params = VllmSamplingParams
        self._delta = RequestOutputKind.DELTA
        self._died: type[Exception] = VllmEngineDeadError
        if config.detokenizer != "none":
            make_tokenizer_folder(Path(self.tokenizer_folder), config.tokenizer)
        is_async = config.front_end == "async"
        args_class = AsyncEngineArgs if is_async else EngineArgs
        arguments = known_arguments(args_class, self.engine_args(config, args_class))
        has_drafts = max(config.num_accepted) > 1 and not may_be_async(config)
        if has_drafts and config.engine_core == "in-process":
            _check_drafts_are_taken()
        try:
            with in_place_of_vllms(self.executor_class(config)):
                if config.setup == "served":
                    return ServedFrontEnd(args_class(**arguments))
                if is_async:
                    self._gate = Gate(gate_path(self.device_log_path), create=True)
                    return AsyncFrontEnd(args_class(**arguments), self._gate)
                return LLMEngine.from_engine_args(args_class(**arguments))
        except ValueError as error:
            raise ValueError(f"vLLM refuses: {_in_a_line(error)}") from None

    def _make_exact(self) -> None:
        """Take thread and clock out of an engine that is to count to the digit."""
        if self.is_exact(self._config):
            core = self._engine.engine_core.engine_core
            take_over(core.model_executor)
            compile_at_once(core.structured_output_manager)
            if self._config.log_stats:
                script_time(self._engine)

    def is_exact(self, config: EngineConfig) -> bool:
        """Whether counts of it are to repeat to the digit."""
        return False

    def _time_output_processing(self) -> None:
        """Have the front end's output processor say how long it took; vLLM calls it by itself."""
        processor = self._engine.output_processor

        def timed(*args: Any, **kwargs: Any) -> Any:
            began = time.perf_counter_ns()
            # Looked up each time, for `stages` may have put another in its place.
            processed = type(processor).process_outputs(processor, *args, **kwargs)
            self._processing_ns += time.perf_counter_ns() - began
            return processed

        processor.process_outputs = timed

    def _wake(self) -> Callable[[], object]:
        """What ends the wait for an engine core that was killed: vLLM's client waits on."""
        ended = EngineDeadError("vLLM's engine core has ended")
        if isinstance(self._engine, AsyncFrontEnd):
            return partial(self._engine.fail, ended)
        queue = self._engine.engine_core.outputs_queue
        return lambda: queue.put_nowait(ended)

    def _cause(self, error: Exception) -> Exception:
        """What to raise for what vLLM raised: most is a consequence once a process has ended."""
        if ended := self._control.ended():
            return EngineDeadError(ended)
        if isinstance(error, self._died):
            return EngineDeadError(f"vLLM's engine core has ended: {error}")
        return error

    def engine_args(self, config: EngineConfig, engine_args_class: Any) -> dict[str, Any]:
        """Arguments of vLLM's ``EngineArgs``; those that a release lacks are left out."""
        raise NotImplementedError

    def executor_class(self, config: EngineConfig) -> Any:
        """The executor that vLLM's engine core is to build."""
        raise NotImplementedError

    def _other_roles(self, config: EngineConfig) -> list[str]:
        roles = ["engine"] if self._is_remote else []
        workers = config.tensor_parallel_size if config.worker == "process" else 0
        return roles + ["worker"] * workers

    @property
    def role(self) -> str:
        """Of this process."""
        return HERE.role

    @property
    def clock(self) -> Callable[[], int]:
        """Read between the phases of a step."""
        return HERE.clock

    @clock.setter
    def clock(self, clock: Callable[[], int]) -> None:
        HERE.clock = clock

    @property
    def phase_stamps(self) -> list[int]:
        """``clock()`` before the last step's first phase and after each.

        Where the engine core has a process of its own, a step is one wait.
        """
        return HERE.phase_stamps

    @property
    def wire_bytes(self) -> int:
        """Not counted: vLLM's queue does not say."""
        return 0

    def add_request(
        self,
        request_index: int,
        prompt_token_ids: Int32Array,
        params: SamplingParams,
        priority: int = 0,
    ) -> None:
        """Queue a request. Raises ValueError where it can never be served."""
        asked: dict[str, Any] = {
            "temperature": 0.0,
            "max_tokens": params.max_tokens,
            "min_tokens": params.min_tokens,
            "stop_token_ids": list(params.stop_token_ids),
            "ignore_eos": params.ignore_eos,
            "logprobs": self._num_logprobs,
            **self._text_params(params),
            **sampling_fields(self._features),
        }
        is_served = isinstance(self._engine, ServedFrontEnd)
        theirs = asked if is_served else self._own_params(asked)
        self._outputs.admit(request_index)
        prompt = {"prompt_token_ids": prompt_token_ids.tolist()}
        try:
            self._engine.add_request(
                str(request_index),
                prompt,
                theirs,
                priority=priority,
                **self._adapter(request_index),
            )
        except Exception as error:
            raise self._cause(error) from None

    def _own_params(self, asked: dict[str, Any]) -> Any:
        if (grammar := asked.get("structured_outputs")) is not None:
            from vllm.sampling_params import StructuredOutputsParams

            asked["structured_outputs"] = StructuredOutputsParams(**grammar)
        return self._sampling_params(**asked, output_kind=self._delta)

    def _adapter(self, request_index: int) -> dict[str, Any]:
        """A request's LoRA adapter, of which nothing is loaded."""
        if not self._features.num_loras:
            return {}
        number = 1 + request_index % self._features.num_loras
        if number not in self._adapters:
            from vllm.lora.request import LoRARequest

            self._adapters[number] = LoRARequest(f"adapter-{number}", number, "nowhere")
        return {"lora_request": self._adapters[number]}

    def _text_params(self, params: SamplingParams) -> dict[str, Any]:
        if self._config.detokenizer == "none":
            return {"detokenize": False}
        return {
            "stop": list(params.stop),
            "include_stop_str_in_output": params.include_stop_str_in_output,
        }

    def abort_request(self, request_index: int) -> None:
        """End a request now; unknown or finished ones are left alone."""
        self._engine.abort_request([str(request_index)])

    def has_unfinished_requests(self) -> bool:
        """Whether another step has anything to do."""
        return bool(self._engine.has_unfinished_requests())

    def step(self) -> StepOutput:
        """One step of vLLM; what its front end makes of it."""
        stamps = HERE.phase_stamps
        stamps[:] = [HERE.clock()] * len(stamps)
        self._processing_ns = 0
        try:
            request_outputs = self._engine.step()
        except Exception as error:
            raise self._cause(error) from None
        HERE.ended("wait" if self._is_remote else PHASES[-1])
        stamps[:] = accumulate(stamps, max)  # a phase that nobody saw has no length
        before, self._device = self._device, self._device_log.read()
        now = self._device
        return self._outputs.take(
            request_outputs,
            self._processing_ns,
            device_ns=now.device_ns - before.device_ns,
            late_ns=now.late_ns - before.late_ns,
            device_seconds=(now.modelled_ns - before.modelled_ns) / 1e9,
        )

    def output_token_ids(self, request_index: int) -> Int32Array:
        """A finished request's tokens, int32 ``[num_output]``; then forgotten."""
        return self._outputs.pop(request_index)

    def output_text(self, request_index: int) -> str:
        """A finished request's text, as far as vLLM has streamed it."""
        return self._outputs.text(request_index)

    def begin_stages(self, meter: Callable[[], StageMeter]) -> None:
        """In each of vLLM's processes."""
        self.collective_rpc(stages.begin, meter)

    def end_stages(self) -> list[StageCost]:
        """Of each of vLLM's processes, this one first."""
        return [cost for costs in self.collective_rpc(stages.end) for cost in costs]

    def handoff_bytes(self, sampled: Any) -> None:
        """Not known: vLLM lets go of a step's tokens within the step."""

    def show_messages(self, to: Callable[[str, bytes], object] | None) -> None:
        """Scheduler outputs and model runner outputs, pickled; not what vLLM's queue puts around
        them. Raises ValueError where none pass through this process.
        """
        if not has_messages(self._config):
            raise ValueError(
                "what crosses to vLLM's workers can be seen with --worker process and "
                "--axis engine-core=in-process"
            )
        HERE.on_message = to

    def message_fields(self, direction: str, message: bytes) -> dict[str, int]:
        """What the bytes of one are for."""
        return pickle_fields(message)

    def read_back(self) -> EngineState:
        """What scheduler, engine core, executor and front end turned out to be."""
        if self._is_remote:
            (core,) = filter(None, self._control.rpc(core_settings_here, ()))
        else:
            core = core_settings(self._engine.engine_core.engine_core)
        return engine_state(self._config, self._engine, core)

    def scheduler_stats(self) -> dict[str, int]:
        """Not asked for: vLLM's statistics are another's, or switched off."""
        return {}

    def wire_seconds(self) -> dict[str, float]:
        """Not timed: encoding and decoding are inside vLLM's queue."""
        return {}

    def device_stats(self) -> dict[str, float]:
        """Nothing: vLLM does not say what its model has done."""
        return {}

    def collective_rpc(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Call ``function(process, *args)`` here, then in vLLM's other processes."""
        return [function(HERE, *args), *self._control.rpc(function, args)]

    def shutdown(self) -> None:
        """End vLLM's processes; safe to call twice."""
        engine = self.__dict__.pop("_engine", None)
        if isinstance(engine, LoopFrontEnd):
            engine.shutdown()
        elif engine is not None:
            engine.engine_core.shutdown()
        if self._gate is not None:
            self._gate.close()
            self._gate = None
        self._control.close()
        shutil.rmtree(self._folder, ignore_errors=True)

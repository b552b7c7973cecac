"""The stages of a step in vLLM's processes."""

from collections.abc import Callable

from engines.protocol import StageCost, StageMeter
from engines.stages import EVENT_LOOP, ProcessStages, StageFunction, StageTable
from engines.vllm import async_front_end, at_rest, loop_front_end, served
from engines.vllm.host_process import HostProcess

_CALLS = (
    StageFunction(EVENT_LOOP, "engines.vllm.async_front_end", "AsyncFrontEnd.step"),
    StageFunction(EVENT_LOOP, "engines.vllm.served", "ServedFrontEnd.step"),
    StageFunction("step", "vllm.v1.engine.llm_engine", "LLMEngine.step"),
    StageFunction("step", "vllm.v1.engine.core", "EngineCoreProc._process_engine_step"),
    StageFunction("schedule", "vllm.v1.core.sched.scheduler", "Scheduler.schedule"),
    StageFunction("device", "engines.vllm.worker", "HostPathWorker.execute_model"),
    StageFunction("device", "engines.vllm.worker", "HostPathWorker.finish"),
    StageFunction(
        "update_from_output", "vllm.v1.core.sched.scheduler", "Scheduler.update_from_output"
    ),
    StageFunction("serialise", "vllm.v1.serial_utils", "MsgpackEncoder.encode_into"),
    StageFunction("transport", "zmq.sugar.socket", "Socket.send"),
    StageFunction("transport", "zmq.sugar.socket", "Socket.send_multipart"),
    StageFunction("transport", "zmq._future", "_AsyncSocket._handle_events"),
    StageFunction("deserialise", "vllm.v1.serial_utils", "MsgpackDecoder.decode"),
    StageFunction(
        "process_outputs", "vllm.v1.engine.output_processor", "OutputProcessor.process_outputs"
    ),
    StageFunction("statistics", "vllm.v1.metrics.loggers", "StatLoggerManager.record"),
)
_COROUTINES = (StageFunction("add", "vllm.v1.engine.async_llm", "AsyncLLM.add_request"),)
_STREAMS = (
    StageFunction("deliver", "vllm.v1.engine.async_llm", "AsyncLLM.generate"),
    *(
        StageFunction("sse", module, "OpenAIServingCompletion.completion_stream_generator")
        for module in (
            "vllm.entrypoints.openai.serving_completion",  # to 0.13
            "vllm.entrypoints.openai.completion.serving",
        )
    ),
)
_OWN_FILES = (async_front_end.__file__, at_rest.__file__, loop_front_end.__file__, served.__file__)
_TABLE = StageTable(_CALLS, _COROUTINES, _STREAMS, _OWN_FILES)


def begin(process: HostProcess, meter: Callable[[], StageMeter]) -> None:
    """Count the stages of this process from now on."""
    process.stages = ProcessStages(meter(), _TABLE)


def end(process: HostProcess) -> list[StageCost]:
    """What was counted since `begin`; nothing where nobody counts."""
    stages, process.stages = process.stages, None
    return stages.end(process.role) if stages else []

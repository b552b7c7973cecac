"""What each stage of a step takes in one of vLLM's processes, by a meter that is given.

The functions below are replaced, where they are imported, for as long as somebody counts. What a
stage calls belongs to it, up to the next function that is one.
"""

import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Generator
from operator import itemgetter
from typing import Any, NamedTuple

from engines.protocol import StageCost, StageMeter
from engines.vllm import async_front_end, at_rest, loop_front_end, served
from engines.vllm.host_process import HostProcess


class _Function(NamedTuple):
    stage: str
    module: str
    name: str


_EVENT_LOOP = "event loop"

_CALLS = (
    _Function(_EVENT_LOOP, "engines.vllm.async_front_end", "AsyncFrontEnd.step"),
    _Function(_EVENT_LOOP, "engines.vllm.served", "ServedFrontEnd.step"),
    _Function("step", "vllm.v1.engine.llm_engine", "LLMEngine.step"),
    _Function("step", "vllm.v1.engine.core", "EngineCoreProc._process_engine_step"),
    _Function("schedule", "vllm.v1.core.sched.scheduler", "Scheduler.schedule"),
    _Function("device", "engines.vllm.worker", "HostPathWorker.execute_model"),
    _Function("device", "engines.vllm.worker", "HostPathWorker.finish"),
    _Function("update_from_output", "vllm.v1.core.sched.scheduler", "Scheduler.update_from_output"),
    _Function("serialise", "vllm.v1.serial_utils", "MsgpackEncoder.encode_into"),
    _Function("transport", "zmq.sugar.socket", "Socket.send"),
    _Function("transport", "zmq.sugar.socket", "Socket.send_multipart"),
    _Function("transport", "zmq._future", "_AsyncSocket._handle_events"),
    _Function("deserialise", "vllm.v1.serial_utils", "MsgpackDecoder.decode"),
    _Function(
        "process_outputs", "vllm.v1.engine.output_processor", "OutputProcessor.process_outputs"
    ),
    _Function("statistics", "vllm.v1.metrics.loggers", "StatLoggerManager.record"),
)
_COROUTINES = (_Function("add", "vllm.v1.engine.async_llm", "AsyncLLM.add_request"),)
_STREAMS = (
    _Function("deliver", "vllm.v1.engine.async_llm", "AsyncLLM.generate"),
    *(
        _Function("sse", module, "OpenAIServingCompletion.completion_stream_generator")
        for module in (
            "vllm.entrypoints.openai.serving_completion",  # to 0.13
            "vllm.entrypoints.openai.completion.serving",
        )
    ),
)
_OWN_FILES = (
    __file__,
    async_front_end.__file__,
    at_rest.__file__,
    loop_front_end.__file__,
    served.__file__,
)
_STAGES = {each.name: each.stage for each in (*_CALLS, *_COROUTINES, *_STREAMS)}


class ProcessStages:
    """The stages of this process, from now until `end`."""

    def __init__(self, meter: StageMeter) -> None:
        self._meter = meter
        # No `Counter`, whose way to answer 0 is Python's and would be counted.
        self._calls: defaultdict[str, int] = defaultdict(int)
        self._streams: defaultdict[str, int] = defaultdict(int)
        self._metered: defaultdict[str, int] = defaultdict(int)
        self._replaced: list[tuple[Any, str, Any]] = []
        for functions, wrap in (
            (_CALLS, self._call),
            (_COROUTINES, self._coroutine),
            (_STREAMS, self._stream),
        ):
            for each in functions:
                self._replace(each, wrap)

    def _replace(
        self, function: _Function, wrap: Callable[[str, Callable[..., Any]], Callable[..., Any]]
    ) -> None:
        owner_name, _, name = function.name.partition(".")
        owner = getattr(sys.modules.get(function.module), owner_name, None)
        if owner is None or name not in vars(owner):
            return
        own = vars(owner)[name]
        self._replaced.append((owner, name, own))
        setattr(owner, name, wrap(function.stage, own))

    def _call(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        run, calls = self._meter.run, self._calls

        def call(*args: Any, **kwargs: Any) -> Any:
            calls[stage] += 1
            return run(stage, function, *args, **kwargs)

        return call

    def _coroutine(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        meter, calls = self._meter, self._calls

        async def call(*args: Any, **kwargs: Any) -> Any:
            calls[stage] += 1
            return await _Resumed(meter, stage, function(*args, **kwargs))

        return call

    def _stream(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        meter, calls, metered, streams = self._meter, self._calls, self._metered, self._streams
        every = meter.every

        async def counted(stream: Any, is_metered: bool) -> AsyncIterator[Any]:
            try:
                while True:
                    calls[stage] += 1
                    metered[stage] += is_metered
                    item = stream.__anext__()
                    try:
                        item = await (_Resumed(meter, stage, item) if is_metered else item)
                    except StopAsyncIteration:
                        return
                    yield item
            finally:
                await stream.aclose()

        def call(*args: Any, **kwargs: Any) -> Any:
            stream = function(*args, **kwargs)
            streams[stage] += 1
            return counted(stream, streams[stage] % every == 1 % every)

        return call

    def end(self, role: str) -> list[StageCost]:
        """Put vLLM's own functions back; what was counted."""
        for owner, name, own in reversed(self._replaced):
            setattr(owner, name, own)
        totals = self._meter.totals(_STAGES, _OWN_FILES)
        for stage, metered in filter(itemgetter(1), self._metered.items()):
            uncounted = round(totals[stage] * (self._calls[stage] / metered - 1))
            totals[stage] += uncounted
            if _EVENT_LOOP in totals:
                totals[_EVENT_LOOP] -= uncounted
        return [
            StageCost(role, stage, self._calls[stage] or 1, amount)
            for stage, amount in totals.items()
        ]


class _Resumed:
    """Something awaited, of which each part between two waits is counted."""

    def __init__(self, meter: StageMeter, stage: str, awaited: Any) -> None:
        self._meter = meter
        self._stage = stage
        self._awaited = awaited

    def __await__(self) -> Generator[Any, Any, Any]:
        run, stage, inner = self._meter.run, self._stage, self._awaited.__await__()
        resume: Callable[..., Any] = inner.send
        value: Any = None
        while True:
            try:
                waits_for = run(stage, resume, value)
            except StopIteration as end:
                return end.value
            try:
                value = yield waits_for
                resume = inner.send
            except BaseException as error:
                resume, value = inner.throw, error


def begin(process: HostProcess, meter: Callable[[], StageMeter]) -> None:
    """Count the stages of this process from now on."""
    process.stages = ProcessStages(meter())


def end(process: HostProcess) -> list[StageCost]:
    """What was counted since `begin`; nothing where nobody counts."""
    stages, process.stages = process.stages, None
    return stages.end(process.role) if stages else []

"""What vLLM's API server does for a stream of completions, without HTTP and in one process.

A request goes through its serving layer and ``AsyncLLM``; what comes back are the lines of its
server-sent events. Nothing here waits for a clock, a thread or another process, so a step does the
same each time.
"""

import asyncio
import gc
import importlib
import inspect
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace
from typing import Any

import msgspec

from engines.vllm.loop_front_end import LoopFrontEnd
from engines.vllm.request_names import request_number

_DATA, _END = "data: ", "data: [DONE]"
_MODEL = "served"


class _Choice(msgspec.Struct):
    index: int
    text: str
    finish_reason: str | None = None
    token_ids: list[int] | None = None


class _Chunk(msgspec.Struct):
    """A line's JSON, with the fields that a ``RequestOutput`` has."""

    outputs: list[_Choice] = msgspec.field(name="choices", default_factory=list)
    error: msgspec.Raw = msgspec.Raw()
    request_id: int = -1
    finished: bool = False


_decode = msgspec.json.Decoder(_Chunk).decode


class ServedFrontEnd(LoopFrontEnd):
    """Has the methods of vLLM's ``LLMEngine`` that `VllmEngine` calls.

    A step is over when vLLM's output handler has gone through what the engine core has sent and
    every stream that it woke has given its line.
    """

    def __init__(self, engine_args: Any) -> None:
        super().__init__()
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._lines: list[tuple[int, str]] = []
        self._tokens: dict[int | None, list[int]] = {}
        self._has_samples = False
        self._loop.run_until_complete(self._build(engine_args))
        # As the server does when it is up.
        gc.collect()
        gc.freeze()

    async def _build(self, engine_args: Any) -> None:
        from vllm.v1.engine.async_llm import AsyncLLM

        from engines.vllm.core_here import core_here

        server = _api_server()
        with core_here():
            self._llm = AsyncLLM.from_engine_args(engine_args)
        state = SimpleNamespace()
        tasks = await self._llm.engine_core.get_supported_tasks_async()
        arguments = [self._llm, state, _server_arguments(engine_args), tasks]
        takes = inspect.signature(server.init_app_state).parameters
        await server.init_app_state(*arguments[: len(takes)])
        self._serving = state.openai_serving_completion
        self._adapters = state.openai_serving_models.lora_requests
        module = sys.modules[type(self._serving).__module__]
        self._request = vars(module)["CompletionRequest"]

    @property
    def served_by(self) -> str:
        """The part of vLLM's API server that requests go through, and what of it is missing."""
        return f"{type(self._serving).__name__}, AsyncLLM, msgpack; no HTTP, no sockets"

    def add_request(
        self,
        request_id: str,
        prompt: Any,
        params: dict[str, Any],
        *,
        priority: int,
        lora_request: Any = None,
    ) -> None:
        """Start the task of a request. Raises ValueError for one that vLLM refuses."""
        index = int(request_id)
        model = _MODEL
        if lora_request is not None:
            model = lora_request.lora_name
            self._adapters[model] = lora_request
        body = {
            "model": model,
            "prompt": prompt["prompt_token_ids"],
            "request_id": request_id,
            "priority": priority,
            "stream": True,
            **params,
        }
        self._has_samples = "n" in params
        self._tokens[index] = []
        self._tasks[index] = self._loop.create_task(self._read(index, body))
        self._loop.run_until_complete(self.engine_core.sent.wait())
        self.engine_core.sent.clear()
        self._raise()

    async def _read(self, index: int, body: dict[str, Any]) -> None:
        lines = self._lines
        try:
            stream = await self._serving.create_completion(self._request(**body), None)
            if not hasattr(stream, "__aiter__"):
                raise ValueError(str(getattr(stream, "error", stream)))
            async for line in stream:
                lines.append((index, line))
        except Exception as error:  # raised to who steps or adds
            self._error = error
        finally:
            self._tasks.pop(index, None)
            self.engine_core.sent.set()
            if self._error is not None:
                self.engine_core.seen_through.set()

    def abort_request(self, request_ids: Iterable[str]) -> None:
        """As where a client hangs up: the tasks are cancelled."""
        tasks = [task for each in request_ids if (task := self._tasks.get(int(each)))]
        if tasks:
            for task in tasks:
                task.cancel()
            self._loop.run_until_complete(asyncio.wait(tasks))
        for each in request_ids:
            self._tokens.pop(int(each), None)

    def has_unfinished_requests(self) -> bool:
        """Whether a stream is open."""
        return bool(self._tasks)

    def step(self) -> list[Any]:
        """A step of the engine core, with its outputs seen through."""
        self._loop.run_until_complete(self._step())
        self._raise()
        return self._chunks()

    async def _step(self) -> None:
        core = self.engine_core
        if core.step():
            await core.seen_through.wait()

    def _chunks(self) -> list[_Chunk]:
        """Those of the step's lines, with the tokens that no line names."""
        tokens, outputs = self._tokens, self.engine_core.outputs
        if self._has_samples:
            outputs = [each for each in outputs if each.request_id.startswith("0_")]
        for output in outputs:
            held = tokens.get(request_number(output.request_id))
            if held is not None:
                held += output.new_token_ids
        chunks: list[_Chunk] = []
        for index, line in self._lines:
            if line.startswith(_END):  # the line before it is the request's last
                chunks[-1].finished = True
                del tokens[index]
                continue
            chunk = _decode(line[len(_DATA) :])
            if not chunk.outputs:
                raise ValueError(f"vLLM answers request {index} with {bytes(chunk.error).decode()}")
            chunk.request_id = index
            choice = chunk.outputs[0]
            if not choice.index:
                choice.token_ids, tokens[index] = tokens[index], []
            chunks.append(chunk)
        self._lines.clear()
        return chunks


def _api_server() -> Any:
    """The module of a release's API server."""
    if find_spec("orjson") is None:
        # 0.33.0 imports it for the body of an answer that is no stream.
        sys.modules["orjson"] = ModuleType("orjson")
    return importlib.import_module("vllm.entrypoints.openai.api_server")


def _server_arguments(engine_args: Any) -> Any:
    """What the command line of a release has where nothing but a model is named."""
    places = (f"vllm.entrypoints.{each}.cli_args" for each in ("common", "launchers", "openai"))
    name = next(filter(_is_there, places), None)
    if name is None:
        raise ValueError(
            "--axis setup=served: this release's API server is not where it is looked for; use "
            "--axis setup=shipped"
        )
    module: Any = importlib.import_module(name)
    parser = module.make_arg_parser(module.FlexibleArgumentParser())
    return parser.parse_args(["--model", engine_args.model, "--served-model-name", _MODEL])


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # nor is the package that it would be in
        return False

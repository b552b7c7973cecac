"""vLLM's `AsyncLLM` as an API server uses it; its event loop runs while a step is asked for.

Each request is a task that reads from `AsyncLLM.generate`.
"""

import asyncio
from collections.abc import Iterable
from typing import Any

from engines.vllm.at_rest import is_at_rest
from engines.vllm.gate import Gate
from engines.vllm.loop_front_end import LoopFrontEnd

_SILENCE_SECONDS = 0.05
_FEWEST_SILENT, _MOST_SILENT = 2, 20
"""So often so long without a word, and another step may end: one whose requests were all aborted,
or whose prompts are not through, brings nothing. Fewer where no thread is at work, for an opening
too many lets two steps end as one; some releases have threads that spin, so there is an end to it.
"""


class AsyncFrontEnd(LoopFrontEnd):
    """Has the methods of vLLM's ``LLMEngine`` that `VllmEngine` calls.

    A step is over when vLLM's output handler has gone through what the engine core has sent and
    every task that it woke has run.
    """

    def __init__(self, engine_args: Any, gate: Gate) -> None:
        import psutil  # no part of the heap where there is no such front end

        super().__init__()
        self._gate = gate
        self._requests: dict[str, asyncio.Task[None]] = {}
        self._outputs: list[Any] = []
        self._is_processing = False
        self._llm = self._loop.run_until_complete(self._build(engine_args))
        self._stepped = asyncio.Event()
        here = psutil.Process()
        self._pids = [each.pid for each in (here, *here.children(recursive=True))]

    async def _build(self, engine_args: Any) -> Any:
        from vllm.v1.engine.async_llm import AsyncLLM

        llm = AsyncLLM.from_engine_args(engine_args)
        core = llm.engine_core
        get_output_async = core.get_output_async

        async def get_output() -> Any:
            if self._is_processing:
                # Behind the tasks that wait in the loop's queue since they were woken.
                self._loop.call_soon(self._stepped.set)
            self._is_processing = False
            outputs = await get_output_async()
            # With vLLM's statistics on some messages bring nothing else, and end no step.
            self._is_processing = bool(outputs.outputs)
            return outputs

        core.get_output_async = get_output
        return llm

    def add_request(self, request_id: str, prompt: Any, params: Any, **more: Any) -> None:
        """Start the task of a request. Raises ValueError for one that vLLM refuses."""
        task = self._loop.create_task(self._read(request_id, prompt, params, more))
        self._requests[request_id] = task
        self._loop.run_until_complete(asyncio.sleep(0))
        self._raise()

    async def _read(self, request_id: str, prompt: Any, params: Any, more: Any) -> None:
        outputs = self._llm.generate(prompt, params, request_id, **more)
        try:
            async for output in outputs:
                self._outputs.append(output)
        except Exception as error:  # raised to who steps or adds
            self._error = error
            self._stepped.set()
        finally:
            self._requests.pop(request_id, None)

    def abort_request(self, request_ids: Iterable[str]) -> None:
        """As where a client hangs up: the tasks are cancelled."""
        tasks = [task for each in request_ids if (task := self._requests.get(each))]
        if tasks:
            for task in tasks:
                task.cancel()
            self._loop.run_until_complete(asyncio.wait(tasks))

    def has_unfinished_requests(self) -> bool:
        """Whether a task waits for outputs, or some have come beside a request's first."""
        return bool(self._requests or self._outputs)

    def step(self) -> list[Any]:
        """Let the engine core end a step, and see its outputs through."""
        if not self._outputs:
            self._stepped.clear()
            self._loop.run_until_complete(self._see_through())
        self._raise()
        # The engine core may have ended a step while requests were added: a step brings a request
        # one output, and what came after it is the next step's.
        first: dict[str, Any] = {}
        later = [
            each for each in self._outputs if first.setdefault(each.request_id, each) is not each
        ]
        self._outputs = later
        return list(first.values())

    async def _see_through(self) -> None:
        self._gate.open_once()
        num_silent = 0
        while self._error is None:
            try:
                async with asyncio.timeout(_SILENCE_SECONDS):
                    await self._stepped.wait()
                return
            except TimeoutError:
                is_silent = self._gate.is_waited_at() and not self._is_processing
                num_silent = num_silent + 1 if is_silent else 0
                if num_silent == _MOST_SILENT or (
                    num_silent >= _FEWEST_SILENT and is_at_rest(self._pids)
                ):
                    self._gate.open_once()
                    num_silent = 0

    def fail(self, error: Exception) -> None:
        """From another thread: end the wait for a step."""

        def fail() -> None:
            self._error = error
            self._stepped.set()

        self._loop.call_soon_threadsafe(fail)

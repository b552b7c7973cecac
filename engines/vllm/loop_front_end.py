"""What both front ends have that run vLLM's `AsyncLLM` in an event loop of their own."""

import asyncio
from typing import Any


class LoopFrontEnd:
    """The loop runs while something is asked for. It is uvloop's, as behind vLLM's API server."""

    _llm: Any

    def __init__(self) -> None:
        # No part of the heap where there is no such front end.
        import uvloop

        self._loop = uvloop.new_event_loop()
        self._error: Exception | None = None

    @property
    def engine_core(self) -> Any:
        """Its client of the engine core."""
        return self._llm.engine_core

    @property
    def output_processor(self) -> Any:
        """Its output processor."""
        return self._llm.output_processor

    @property
    def log_stats(self) -> bool:
        """Whether vLLM's statistics are kept."""
        return bool(self._llm.log_stats)

    def _raise(self) -> None:
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def shutdown(self) -> None:
        """End vLLM's tasks and its engine core."""
        self._llm.shutdown()
        self._loop.run_until_complete(_end_tasks())
        self._loop.close()


async def _end_tasks() -> None:
    """Cancel all of the loop's but this one, and wait until they have ended."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

"""A step's tokens, fetched when vLLM asks for them and by the thread that asks.

Up to 0.20 vLLM's executor has a thread fetch them, and whether that is done when the engine core
looks decides what it does next. From 0.21 on its future does as this one.
"""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any


class _Fetched(Future[Any]):
    def __init__(self, fetch: Callable[[], Any]) -> None:
        super().__init__()
        self._fetch = fetch

    def result(self, timeout: float | None = None) -> Any:
        if not self.done():
            try:
                self.set_result(self._fetch())
            except Exception as error:  # raised to who asks, each time
                self.set_exception(error)
        return super().result(timeout)


class WhenAsked:
    """In the place of a pool with one thread."""

    def submit(self, fetch: Callable[[], Any]) -> Future[Any]:
        """A future that is done once somebody has asked for its result."""
        return _Fetched(fetch)


def take_over(executor: Any) -> None:
    """Of an executor of vLLM's that may have such a thread: end it and stand in for it."""
    if (pool := getattr(executor, "async_output_thread", None)) is not None:
        pool.shutdown()
        executor.async_output_thread = WhenAsked()

"""A step's tokens, fetched when vLLM asks for them and by the thread that asks; grammars, at once.

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


class AtOnce:
    """In the place of a pool of threads of which nobody may see that they take their time."""

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        """A future that is done."""
        future: Future[Any] = Future()
        try:
            future.set_result(function(*args))
        except Exception as error:  # raised to who asks
            future.set_exception(error)
        return future

    def shutdown(self, **_: Any) -> None:
        """There is nothing to end."""


def take_over(executor: Any) -> None:
    """Of an executor of vLLM's that may have such a thread: end it and stand in for it."""
    if (pool := getattr(executor, "async_output_thread", None)) is not None:
        pool.shutdown()
        executor.async_output_thread = WhenAsked()


def compile_at_once(structured_output_manager: Any) -> None:
    """Have grammars compiled, and bitmasks filled, by the thread that asks for it."""
    for name in ("executor", "executor_for_fillmask"):
        if (pool := getattr(structured_output_manager, name, None)) is not None:
            pool.shutdown()
            setattr(structured_output_manager, name, AtOnce())

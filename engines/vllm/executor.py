"""vLLM's own executors, looked at: when a step passes through them, and what comes back."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from vllm.v1.executor.abstract import Executor, UniProcExecutor
from vllm.v1.executor.multiproc_executor import MultiprocExecutor

from engines.builtin.registries import REPRESENTATIONS
from engines.vllm.device_log import DeviceLog
from engines.vllm.dialect import SCHEDULER_TAKES
from engines.vllm.host_process import HERE
from engines.vllm.settings import read_additional_config


class _Future:
    """A future of vLLM's whose result is looked at on its way."""

    def __init__(self, future: Any, watched: "_Watched") -> None:
        self._future = future
        self._watched = watched

    def result(self, timeout: float | None = None) -> Any:
        """The result, once."""
        return self._watched.came(self._watched.call(self._future.result))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._future, name)


class _Watched:
    """Stamps the phases that only an executor sees, and shows what passes through it.

    A release may ask for the tokens with `execute_model` or, after it has answered None, with
    `sample_tokens`, and may want to wait for them or not; all four come by here.
    """

    def execute_model(self, scheduler_output: Any, *args: Any, **kwargs: Any) -> Any:
        """As vLLM's, with the end of scheduling stamped."""
        HERE.ended("schedule")
        HERE.crosses("scheduler_output", scheduler_output)
        execute_model: Callable[..., Any] = super().execute_model  # type: ignore[misc]
        return self._watch(self.call(execute_model, scheduler_output, *args, **kwargs))

    def sample_tokens(self, grammar_output: Any, *args: Any, **kwargs: Any) -> Any:
        """As vLLM's, watched."""
        sample_tokens: Callable[..., Any] = super().sample_tokens  # type: ignore[misc]
        return self._watch(self.call(sample_tokens, grammar_output, *args, **kwargs))

    def _watch(self, output: Any) -> Any:
        if hasattr(output, "result"):
            self._left()
            return _Future(output, self)
        return self.came(output)

    def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call into vLLM's own executor."""
        return function(*args, **kwargs)

    def came(self, output: Any) -> Any:
        """What an executor answers, None where the tokens are still to be asked for."""
        if output is not None:
            HERE.crosses("model_runner_output", output)
            self._arrived(output)
            HERE.ended("handoff")
        return output

    def _left(self) -> None:
        """A step is under way and the scheduler may go on."""

    def _arrived(self, output: Any) -> None:
        """A step's tokens are here."""


class _HostPath(_Watched):
    """Turns what crossed into what is read, on the scheduler's side of the hop.

    A release's scheduler reads one representation. Another that crosses is turned into it one
    request at a time, as vLLM 0.11.1 did with its arrays.
    """

    def _init_executor(self) -> None:
        config, _ = read_additional_config(self.vllm_config)  # type: ignore[attr-defined]
        # A worker in this process stamps these phases itself, and more closely.
        self._is_remote = config.worker == "process"
        self._per_request: Callable[[Any], Any] | None = None
        if config.representation != SCHEDULER_TAKES:
            self._per_request = REPRESENTATIONS.load(config.representation)().per_request
        super()._init_executor()  # type: ignore[misc]

    def _left(self) -> None:
        if self._is_remote:
            HERE.ended("launch")

    def _arrived(self, output: Any) -> None:
        if self._is_remote:
            HERE.ended("wait")
        if self._per_request is not None and output.req_ids:
            tokens = self._per_request(output.sampled_token_ids)
            output.sampled_token_ids = [[t] if isinstance(t, int) else t for t in tokens]


class HostPathUniProc(_HostPath, UniProcExecutor):  # type: ignore[misc]
    """The host path's worker in the engine core's process."""


class HostPathMultiproc(_HostPath, MultiprocExecutor):  # type: ignore[misc]
    """The host path's worker in a process of its own, behind vLLM's shared-memory queue."""


class _Timed(_Watched):
    """Counts as the device's what the engine core spends in its executor, the runner included."""

    def _init_executor(self) -> None:
        _, device_log = read_additional_config(self.vllm_config)  # type: ignore[attr-defined]
        self._device_log = DeviceLog(device_log)
        super()._init_executor()  # type: ignore[misc]

    def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call into vLLM's own executor, and count the time."""
        began = time.perf_counter_ns()
        try:
            return function(*args, **kwargs)
        finally:
            self._device_log.add(time.perf_counter_ns() - began, 0, 0.0)

    def _arrived(self, output: Any) -> None:
        HERE.ended("wait")


class TimedUniProc(_Timed, UniProcExecutor):  # type: ignore[misc]
    """vLLM's worker in the engine core's process."""


class TimedMultiproc(_Timed, MultiprocExecutor):  # type: ignore[misc]
    """vLLM's worker in a process of its own."""


@contextmanager
def in_place_of_vllms(executor: type[Executor]) -> Iterator[None]:
    """Let vLLM, built inside, take this executor for whichever its configuration names.

    It takes a class by ``distributed_executor_backend`` too, but up to 0.16 refuses async
    scheduling with one.
    """
    own = Executor.__dict__["get_class"]
    Executor.get_class = staticmethod(lambda _: executor)
    try:
        yield
    finally:
        Executor.get_class = own

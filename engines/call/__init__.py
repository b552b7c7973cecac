"""Any function as an engine: a step calls it once for each request that runs."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import repeat
from typing import ClassVar

import numpy as np

from engines.call.launch import launch_call
from engines.call.target import function_of, module_of
from engines.protocol import (
    PHASES,
    SCRIPT,
    ContradictionError,
    Delivered,
    EngineConfig,
    FinishReason,
    Int32Array,
    Launch,
    SamplingParams,
    StepEngine,
    StepOutput,
    Traits,
)


class CallEngine(StepEngine):
    """Calls ``target`` once for each request and step: a figure per request and step is of a call.

    What a step makes for itself is made when requests come and go, so that the steps between
    leave the collector to the calls. A step executes some twenty bytecodes, and eight per call.
    """

    target: ClassVar[str]
    package: ClassVar[str]
    has_wait_hook = False
    axes: ClassVar[frozenset[str]] = frozenset()
    own_values: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    shapes = (("", "per_request"),)
    role = "engine"
    script = SCRIPT

    @staticmethod
    def complete(config: EngineConfig) -> EngineConfig:
        """Nothing is open: a call has no device and hands no tokens over."""
        for name, value, only in (
            ("device", config.device, "null"),
            ("representation", config.representation, ""),
            ("worker", config.worker, "in-process"),
            ("output-processing", config.output_processing, "inline"),
        ):
            if value not in ("", only):
                raise ContradictionError(f"--{name} {value}: a call has none; leave it out")
        return replace(config, device="null", device_profile="", representation="")

    @staticmethod
    def traits(config: EngineConfig) -> Traits:
        """All of it is one thread, as long as the function starts none."""
        return Traits(is_exact=True, takes_gpu=False, can_pause=True, can_fork=True, trace_every=1)

    @staticmethod
    def launch(python: str, release: str) -> Launch:
        """Where the function can be imported; a ``release`` is a folder to find it in first."""
        return launch_call(python, release)

    @staticmethod
    def releases() -> None:
        """None but commits."""

    @staticmethod
    def prepare(release: str) -> None:
        """Nothing."""

    def __init__(self, config: EngineConfig) -> None:
        self.vocab_size = config.vocab_size
        self.phase_stamps = [0] * (len(PHASES) + 1)
        self._call = function_of(self.target)
        self._left: dict[int, int] = {}
        self._lengths: dict[int, int] = {}
        self._lay_out()

    def add_request(
        self,
        request_index: int,
        prompt_token_ids: Int32Array,
        params: SamplingParams,
        priority: int = 0,
    ) -> None:
        """One call more in each of the next ``max_tokens`` steps."""
        self._settle()
        self._left[request_index] = self._lengths[request_index] = params.max_tokens

    def abort_request(self, request_index: int) -> None:
        """Call no more for it."""
        self._settle()
        self._left.pop(request_index, None)
        self._lengths.pop(request_index, None)

    def has_unfinished_requests(self) -> bool:
        """Whether there is anything left to call."""
        return bool(self._left)

    def step(self) -> StepOutput:
        """Call the function for each request; what it raises goes through."""
        if not self._is_laid_out:
            self._lay_out()
        call, stamps = self._call, self.phase_stamps
        stamps[0] = stamps[1] = stamps[2] = stamps[3] = stamps[4] = self.clock()
        # A loop in C would be faster, but since 3.12 the collector runs between two bytecodes only.
        for _ in repeat(None, self._num_calls):
            call()
        stamps[5] = self.clock()
        self._num_steps -= 1
        return self._output if self._num_steps else self._last()

    def output_token_ids(self, request_index: int) -> Int32Array:
        """Zeros, one for each call."""
        return np.zeros(self._lengths.pop(request_index), np.int32)

    def _lay_out(self) -> None:
        """Make what the steps up to the end of the next request have in common."""
        self._is_laid_out = True
        self._num_calls = len(self._left)
        self._num_steps = min(self._left.values(), default=0)
        self._whole = self._num_steps
        self._index = np.fromiter(self._left, np.int64, self._num_calls)
        self._output = self._delivered([])

    def _last(self) -> StepOutput:
        """The output of a step with which requests end."""
        self._settle()
        finished = [index for index, left in self._left.items() if not left]
        output = self._delivered(finished)
        for index in finished:
            del self._left[index]
        return output

    def _settle(self) -> None:
        """Charge the requests with the steps since `_lay_out`, which has to be done again."""
        if self._is_laid_out and (taken := self._whole - self._num_steps):
            for index in self._left:
                self._left[index] -= taken
        self._is_laid_out = False

    def _delivered(self, finished: list[int]) -> StepOutput:
        reasons = np.full(len(finished), FinishReason.LENGTH, np.int8)
        return StepOutput(
            [
                Delivered(
                    self._index,
                    np.ones(self._num_calls, np.int32),
                    (),
                    np.array(finished, np.int64),
                    reasons,
                )
            ]
        )


@cache
def engine_of(target: str) -> type[CallEngine]:
    """The engine that calls ``module:function``. Raises ValueError where it is not spelled so."""
    package = module_of(target).partition(".")[0]
    return type("CallEngine", (CallEngine,), {"target": target, "package": package})

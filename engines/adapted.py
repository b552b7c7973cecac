"""An `Adapter` as an `EngineClass` and a `StepEngine`: all that its writer need not write."""

import time
from array import array
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from engines.adapter import Adapter, NewTokens
from engines.package_tree import launch_package
from engines.protocol import (
    PHASES,
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

_NOTHING = StepOutput(())


class AdaptedClass:
    """What an adapter's class answers as an `EngineClass`."""

    has_wait_hook = False

    def __init__(self, adapter: type[Adapter]) -> None:
        self.adapter = adapter
        self.__module__ = adapter.__module__
        self.package = adapter.package or adapter.__module__.partition(".")[0]
        self.axes = adapter.axes
        self.shapes = tuple((name, "per_request") for name in adapter.representations or ("",))
        self.own_values: Mapping[str, tuple[str, ...]] = {
            "representation": adapter.representations,
            "device": adapter.devices,
        }

    def complete(self, config: EngineConfig) -> EngineConfig:
        """Its first representation and device where none is named, and a profile of none.

        Raises ValueError for names that are not its own.
        """
        return replace(
            config,
            device=_one_of("device", config.device, self.adapter.devices),
            device_profile="",
            representation=_one_of(
                "representation", config.representation, self.adapter.representations
            ),
        )

    def traits(self, config: EngineConfig) -> Traits:
        """As its class says, however it is configured."""
        return self.adapter.traits

    def launch(self, python: str, release: str) -> Launch:
        """This interpreter or the one asked for, which must have the adapter installed; a
        ``release`` is a tree that has the package. Raises ValueError where there is none.
        """
        return launch_package(self.package, python, release)

    def releases(self) -> None:
        """None but the commits of its repository."""

    def prepare(self, release: str) -> None:
        """A tree is there or not."""

    def __call__(self, config: EngineConfig) -> "AdaptedEngine":
        """Build it."""
        return AdaptedEngine(self.adapter(config), config)


def _one_of(axis: str, asked: str, own: tuple[str, ...]) -> str:
    """Raises ValueError where ``asked`` is none of its own names."""
    if not asked or asked in own:
        return asked or next(iter(own), "")
    if own:
        raise ValueError(f"--{axis} {asked}: this engine has {', '.join(own)}; use one of them")
    raise ValueError(f"--{axis} {asked}: this engine has no {axis}s of its own; leave it out")


class AdaptedEngine(StepEngine):
    """Keeps each request's tokens and tells what a step has done.

    What it does for each row is done in C: a step of any batch runs the same bytecodes here, and
    what is kept of a request is nothing that the collector tracks.
    """

    role = "engine"

    def __init__(self, adapter: Adapter, config: EngineConfig) -> None:
        self.vocab_size = adapter.vocab_size
        own = type(adapter)  # another engine's tokens may be any others
        self.script = f"{own.__module__}.{own.__qualname__}" if own.repeats_tokens else ""
        self.clock: Callable[[], int] = time.perf_counter_ns
        self.phase_stamps = [0] * (len(PHASES) + 1)
        self._adapter = adapter
        self._held: dict[int, array[int]] = {}
        self._aborted: set[int] = set()
        self._can_abort = type(adapter).abort_request is not Adapter.abort_request

    def add_request(
        self,
        request_index: int,
        prompt_token_ids: Int32Array,
        params: SamplingParams,
        priority: int = 0,
    ) -> None:
        """Queue a request; of priorities an adapter is not told."""
        self._adapter.add_request(request_index, prompt_token_ids, params)
        self._held[request_index] = array("i")

    def abort_request(self, request_index: int) -> None:
        """End it, or let it run on; what steps still bring of it is dropped."""
        if self._held.pop(request_index, None) is None:
            return
        self._aborted.add(request_index)
        if self._can_abort:
            self._adapter.abort_request(request_index)

    def step(self) -> StepOutput:
        """A step of the adapter's. Raises BreachError where that is not what it must be."""
        stamps, clock = self.phase_stamps, self.clock
        stamps[0] = clock()
        made = self._adapter.step()
        stamps[1:] = [clock()] * len(PHASES)
        if made is None:
            return _NOTHING
        if self._aborted and isinstance(made, NewTokens):
            made = self._without_aborted(made)
        keep: Callable[[array[int], Any], None]
        try:
            requests, tokens, finished, reasons, device_ns = made
            if len(tokens) != len(requests):
                raise ValueError
            if len(tokens) and isinstance(tokens[0], (int, np.integer)):
                counts, keep = np.ones(len(tokens), np.int32), array.append
            else:
                counts, keep = np.fromiter(map(len, tokens), np.int32, len(tokens)), array.extend
            deque(map(keep, map(self._held.__getitem__, requests), tokens), maxlen=0)
        except (KeyError, TypeError, ValueError) as error:
            raise BreachError(_breach(made, self._held)) from error
        delivered = Delivered(
            np.array(requests, np.int64),
            counts,
            tokens,
            np.array(finished, np.int64),
            np.array(reasons, np.int8)
            if len(reasons)
            else np.full(len(finished), FinishReason.LENGTH, np.int8),
        )
        return StepOutput([delivered], tokens, device_ns)

    def _without_aborted(self, made: NewTokens) -> NewTokens:
        """What it has made for those that somebody still waits for."""
        gone = self._aborted
        if gone.isdisjoint(made.requests) and gone.isdisjoint(made.finished):
            return made
        rows = [row for row, request in enumerate(made.requests) if request not in gone]
        ended = [row for row, request in enumerate(made.finished) if request not in gone]
        reasons = made.finish_reasons
        gone.difference_update(made.finished)
        return made._replace(
            requests=[made.requests[row] for row in rows],
            tokens=[made.tokens[row] for row in rows],
            finished=[made.finished[row] for row in ended],
            finish_reasons=[reasons[row] for row in ended] if len(reasons) else (),
        )

    def has_unfinished_requests(self) -> bool:
        """Whether another step has anything to do."""
        return self._adapter.has_unfinished_requests()

    def output_token_ids(self, request_index: int) -> Int32Array:
        """A finished request's tokens, int32 ``[num_output]``; then it is forgotten."""
        return np.array(self._held.pop(request_index), np.int32)

    def scheduler_stats(self) -> dict[str, int]:
        """What the adapter counts."""
        return dict(self._adapter.scheduler_stats())

    def handoff_bytes(self, sampled: Any) -> int | None:
        """As the adapter says."""
        return self._adapter.handoff_bytes(sampled)

    def shutdown(self) -> None:
        """End what the adapter has started."""
        self._adapter.shutdown()


class BreachError(ValueError):
    """What `Adapter.step` has returned is not as it must be; in a sentence, and what to do."""


def _breach(made: Any, held: Mapping[int, Any]) -> str:
    """What is wrong with something that could not be taken for what a step has made."""
    if not isinstance(made, NewTokens):
        made = type(made).__name__
        return f"step() returned a {made}; return NewTokens(requests, tokens, finished) or None"
    requests, tokens = made.requests, made.tokens
    if len(requests) != len(tokens):
        return (
            f"step() names {len(requests)} requests and has tokens of {len(tokens)}; give as many "
            "of one as of the other"
        )
    for request, its in zip(requests, tokens, strict=True):
        if request not in held:
            return (
                f"step() hands over tokens of request {request!r}, which add_request was never "
                "given or which has ended; name requests by its first argument"
            )
        if isinstance(its, str) or not isinstance(its, (int, np.integer, Sequence, np.ndarray)):
            return f"step() hands over {its!r} for request {request}; a token is a whole number"
    return (
        f"step() hands over {tokens!r:.100}; give each request a token, or each a sequence of "
        "tokens, all of them whole numbers"
    )


def as_engine(found: Any) -> Any:
    """The engine's class that an entry leads to: an adapter's, made one; any other as it is."""
    if isinstance(found, type) and issubclass(found, Adapter):
        return AdaptedClass(found)
    return found

"""What a request costs beside its steps: to add, to admit and finish, to abort. Exact counts."""

import gc
import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from engines.protocol import WatchedEngine
from gcbench.opcodes import OpcodeCounter
from harness.collector.state import restore, snapshot
from harness.trial.client import Streams, sampling_params, take
from workloads.schedule import Schedule

_MOST_REQUESTS = 16
_SHORT, _LONG = 2, 18
"""Output tokens of two lives. They differ by a KV block, so each step's share of one is alike."""
_LONGEST_PROMPT = 1024
"""Tokens; an engine that hashes each block of a prompt would be traced for minutes."""
_STEPS_BEFORE, _STEPS_AFTER = 2, 3
"""Steps around an abort: with two under way the third is the first that knows of it."""
_COUNT_OFFSET = 2_000
"""More than the objects from before that die in a step of so few requests."""


class Cost(NamedTuple):
    """Of some calls together."""

    bytecodes: int
    allocations: int

    def without(self, other: "Cost") -> "Cost":
        """What it is more."""
        return Cost(self.bytecodes - other.bytecodes, self.allocations - other.allocations)


class Meter:
    """Counts what calls execute and allocate, each from empty free lists on; the collector is off.

    An object from a free list would not count, and a request keeps fewer than the lists hold.
    """

    def __init__(self) -> None:
        self._counter = OpcodeCounter()
        self._num_calls = 0

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """What ``function(*args)`` returns."""
        gc.collect()  # empties the free lists, and sets the young count to zero
        # The count stops at zero when older objects die; from here on it never gets there.
        offset: list[list[None]] = [[] for _ in range(_COUNT_OFFSET)]
        self._num_calls += 1
        with self._counter:
            result = function(*args)
        del offset
        return result

    def cost(self) -> Cost:
        """Of all calls so far, less what leaving the counter's block counts on 3.11."""
        nothing = OpcodeCounter()
        with nothing:
            pass
        return Cost(
            self._counter.num_opcodes - self._num_calls * nothing.num_opcodes,
            self._counter.num_allocations - self._num_calls * nothing.num_allocations,
        )


class _Served(NamedTuple):
    """``rows``: how often a request got tokens, over all steps."""

    add: Cost
    rest: Cost
    rows: int

    def without(self, fewer: "_Served") -> "_Served":
        """What the others have cost: not what a step costs whoever is in it."""
        return _Served(
            self.add.without(fewer.add), self.rest.without(fewer.rest), self.rows - fewer.rows
        )


_Call = Callable[..., Any]
"""Calls its first argument with the others."""


class _Visitors:
    """Requests of no one's, a few at a time on an engine that has no others."""

    def __init__(self, engine: WatchedEngine, schedule: Schedule, streams: Streams | None) -> None:
        self._engine = engine
        self._schedule = schedule
        self._streams = streams
        self._params = sampling_params(schedule)[0]
        self._next = 2 * schedule.num_requests  # `warm_up` has had the first ones
        self._num_crowds = 0

    def serve(self, count: int, num_tokens: int) -> _Served:
        """Add requests of so many output tokens and step until all have ended."""
        engine, adding, serving = self._engine, Meter(), Meter()
        self._add(count, num_tokens, adding.call)
        rows = 0
        while engine.has_unfinished_requests():
            output = serving.call(engine.step)
            rows += output.num_rows
            for delivered in output.delivered:
                take(delivered, self._streams)
                for index in delivered.finished.tolist():
                    serving.call(engine.output_token_ids, index)
        return _Served(adding.cost(), serving.cost(), rows)

    def abort(self, count: int, num_aborted: int) -> Cost:
        """Abort the last of ``count`` running requests, and the next steps of the others."""
        engine, meter = self._engine, Meter()
        indices = self._add(count, _LONG, operator.call)
        for _ in range(_STEPS_BEFORE):
            self._step(operator.call)
        for index in indices[count - num_aborted :]:
            meter.call(engine.abort_request, index)
        for _ in range(_STEPS_AFTER):
            self._step(meter.call)
        for index in indices:
            engine.abort_request(index)
        while engine.has_unfinished_requests():
            engine.step()
        return meter.cost()

    def _add(self, count: int, num_tokens: int, call: _Call) -> list[int]:
        schedule, engine = self._schedule, self._engine
        longest = min(_LONGEST_PROMPT, schedule.max_model_len - _LONG)
        params = replace(
            self._params, max_tokens=num_tokens, min_tokens=min(schedule.min_tokens, num_tokens)
        )
        indices = list(range(self._next, self._next + count))
        self._next += count
        self._num_crowds += 1
        for i, index in enumerate(indices):
            prompt = schedule.prompt_token_ids(i, engine.vocab_size)[:longest]
            # Turned one token further each time: a prefix cache must not know it.
            prompt = np.ascontiguousarray(np.roll(prompt[::-1], self._num_crowds))
            call(engine.add_request, index, prompt, params)
        return indices

    def _step(self, call: _Call) -> None:
        engine = self._engine
        if engine.has_unfinished_requests():
            for delivered in call(engine.step).delivered:
                take(delivered, self._streams)
                for index in delivered.finished.tolist():
                    engine.output_token_ids(index)


def request_costs(
    engine: WatchedEngine, schedule: Schedule, batch_size: int, streams: Streams | None = None
) -> dict[str, float | None]:
    """Bytecodes and allocations per request that is added, served and aborted.

    The engine must be idle. Lives of two lengths tell what a step costs, and what is left is the
    request's: to be scheduled first, to compute its prompt, to end. Each life is had by two crowds,
    of which one is larger: what a step costs whoever is in it is in neither's difference, also
    where not all steps cost it. An abort is counted with the
    steps after it, less those of as many other requests without one. Nothing where the longest
    request of the schedule has no more than 18 tokens.
    """
    if schedule.max_model_len <= _LONG:
        return {}
    count = min(_MOST_REQUESTS, batch_size, schedule.num_requests)
    num_aborted = (count + 1) // 2
    fewer = count // 2
    before, callbacks = snapshot(), gc.callbacks[:]
    gc.disable()
    gc.freeze()  # a full pass then visits what these requests make, and no more
    gc.callbacks.clear()  # they would put objects into the free lists again
    try:
        visitors = _Visitors(engine, schedule, streams)
        visitors.abort(count, num_aborted)
        lives: list[tuple[_Served, _Served]] = []
        for crowd in (count, fewer):
            # What an engine tidies up in the step after an end, a life finds of the one before.
            visitors.serve(crowd, _SHORT)
            lives.append((visitors.serve(crowd, _SHORT), visitors.serve(crowd, _LONG)))
        short, long = (more.without(less) for more, less in zip(*lives, strict=True))
        others = count - num_aborted
        aborted, undisturbed = visitors.abort(count, num_aborted), visitors.abort(others, 0)
    finally:
        gc.callbacks[:] = callbacks
        restore(before)
    costs: dict[str, float | None] = {}
    for place, name in enumerate(Cost._fields):
        added = short.add[place] + long.add[place]
        steps, more_rows = long.rest[place] - short.rest[place], long.rows - short.rows
        costs[f"{name}_per_add"] = added / (2 * (count - fewer))
        if more_rows:
            ended = short.rest[place] - steps * short.rows / more_rows
            costs[f"{name}_per_finish"] = ended / (count - fewer)
        costs[f"{name}_per_abort"] = (aborted[place] - undisturbed[place]) / num_aborted
    return costs

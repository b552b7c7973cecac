"""What a request costs beside its steps: to add, to admit and finish, to abort. Exact counts."""

import gc
import itertools
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import fsum
from typing import Any, NamedTuple

import numpy as np

from engines.protocol import Int32Array, StepEngine
from gcbench.function_costs import FunctionCost, counted_calls
from gcbench.opcodes import OpcodeCounter
from harness.collector.state import restore, snapshot
from harness.trial.client import Streams, abort_all, sampling_params, take
from harness.trial.output_hashes import RanFunction
from harness.trial.step_costs import Counted, RequestFunctionCost, usual_count
from workloads.schedule import Schedule

_MOST_REQUESTS = 16
_MOST_PREEMPTING = 32
"""Requests, together more than a cache that preempts has room for."""
_RUNNING = 18
"""Output tokens of a request that is aborted, or runs beside one: enough for all steps counted."""
_PERIODS = (32, 16)
"""Steps from those at a request's end back to those that stand for decode steps: whole KV-cache
blocks, so that as many are allocated in both. Requests have twice as many tokens."""
_RUNNINGEST_PROMPT = 1024
"""Tokens; an engine that hashes each block of a prompt would be traced for minutes."""
_STEPS_BEFORE, _STEPS_AFTER = 2, 3
"""Steps around an abort: with two under way the third is the first that knows of it."""
_SHIFTS = (0, 3, 7)
"""Steps, and requests, of no one's before each window: what an engine does every so many steps then
falls into one window and not into another. Of all periods up to 200, wherever they begin, one in
6,000 falls into all alike."""
_COUNT_OFFSET = 2_000
"""More than the objects from before that die in a step of so few requests."""


FunctionName = tuple[str, str, int]
"""File, qualified name and first line."""


class Cost:
    """Bytecodes and allocations of some calls together, by function."""

    def __init__(self, functions: dict[FunctionName, tuple[float, float]]) -> None:
        self._functions = functions

    @classmethod
    def of(cls, functions: Iterable[FunctionCost]) -> "Cost":
        """Of what a meter has counted."""
        return cls(
            {
                (each.file, each.name, each.line): (each.bytecodes, each.allocations)
                for each in functions
            }
        )

    def without(self, other: "Cost") -> "Cost":
        """What it is more than the other."""
        mine, theirs = self._functions, other._functions
        nothing = (0.0, 0.0)
        return Cost(
            {
                name: (
                    mine.get(name, nothing)[0] - theirs.get(name, nothing)[0],
                    mine.get(name, nothing)[1] - theirs.get(name, nothing)[1],
                )
                for name in mine | theirs
            }
        )

    def per(self, count: int) -> "Cost":
        """A share of it."""
        return Cost(
            {
                name: (bytecodes / count, allocations / count)
                for name, (bytecodes, allocations) in self._functions.items()
            }
        )

    @property
    def counted(self) -> Counted:
        """Of all functions, whichever has them."""
        return Counted(self.bytecodes, self.allocations)

    @property
    def bytecodes(self) -> float:
        """Of all functions."""
        return _sum(bytecodes for bytecodes, _ in self._functions.values())

    @property
    def allocations(self) -> float:
        """Of all functions."""
        return _sum(allocations for _, allocations in self._functions.values())

    def by_function(self) -> list[RequestFunctionCost]:
        """Those that cost anything, the dearest first."""
        found = [
            RequestFunctionCost(*name, *costs)
            for name, costs in self._functions.items()
            if any(costs)
        ]
        return sorted(found, key=lambda each: (-each.bytecodes, each))


class Meter:
    """Counts what calls execute and allocate, each from empty free lists on; the collector is off.

    An object from a free list would not count, and a request keeps fewer than the lists hold.
    """

    def __init__(self) -> None:
        self._counter = OpcodeCounter()
        gc.freeze()  # a full pass then visits what the calls make, and no more

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """What ``function(*args)`` returns."""
        gc.collect()  # empties the free lists, and sets the young count to zero
        # The count stops at zero when older objects die; from here on it never gets there.
        offset: list[list[None]] = [[] for _ in range(_COUNT_OFFSET)]
        with self._counter:
            result = function(*args)
        del offset
        return result

    def functions(self) -> list[FunctionCost]:
        """What all calls so far have run."""
        return counted_calls(self._counter.tree, {}).functions


def _sum(parts: Iterable[float]) -> float:
    return round(fsum(parts), 9)  # whole numbers, each divided by the same one


class _Life(NamedTuple):
    """How many tokens requests get that are served together, and which of their steps count.

    The ``num_first`` steps until each has a token, and as many until the last has ended. Together
    they hold one step of each request's more than these would as decode steps, however the steps
    overlap: so as many, ``period`` before the end, are taken off. All count, where there is none.
    """

    num_tokens: int = 1
    num_first: int = 0
    period: int = 0

    def counts(self, step: int) -> int:
        """1, -1 or 0: a step's part in what the requests cost."""
        left = self.num_first + self.num_tokens - 1 - step
        if not self.period or step < self.num_first or left <= self.num_first:
            return 1
        return -1 if self.period < left <= self.period + self.num_first else 0


_BRIEF = _Life()


class _Served(NamedTuple):
    """What some requests have cost: to be added, and from then on but for their decode steps."""

    add: Cost
    rest: Cost


_Call = Callable[..., Any]
"""Calls its first argument with the others."""


class _Visitors:
    """Requests of no one's, a few at a time on an engine that has no others."""

    def __init__(
        self,
        engine: StepEngine,
        schedule: Schedule,
        streams: Streams | None,
        output_text: Callable[[int], str] | None,
    ) -> None:
        self.ran: set[RanFunction] = set()
        self._engine = engine
        self._schedule = schedule
        self._streams = streams
        tokens = engine.output_token_ids
        self._taking = [tokens] if output_text is None else [output_text, tokens]
        self._params = sampling_params(schedule)[0]
        self._next = 2 * schedule.num_requests  # `warm_up` has had the first ones
        self._num_crowds = 0

    def lives(self, *counts: int) -> list[_Life]:
        """How so many requests are served: to many tokens, where none skips or waits for a step."""
        prompts = [self._prompt(i) for i in range(max(counts))]
        room = self._schedule.max_model_len - max(map(len, prompts))
        for period in _PERIODS:
            if 2 * period <= room:
                found = [self._num_first(count, 2 * period) for count in counts]
                if all(0 < each < period for each in found):
                    return [_Life(2 * period, each, period) for each in found]
        return [_BRIEF for _ in counts]

    def _num_first(self, count: int, num_tokens: int) -> int:
        """Steps until each has its first token; 0 where they are not served a token a step."""
        waiting, num_steps, num_first = set(self._add(count, num_tokens, operator.call)), 0, 0
        while self._engine.has_unfinished_requests():
            num_steps += 1
            num_first += bool(waiting)
            waiting.difference_update(*self._step(operator.call))
        return num_first if num_steps == num_first + num_tokens - 1 else 0

    def serve(self, count: int, life: _Life = _BRIEF) -> _Served:
        """Add requests and step until all have ended."""
        engine, adding, serving, decoding = self._engine, Meter(), Meter(), Meter()
        self._add(count, life.num_tokens, adding.call)
        meters: dict[int, _Call] = {1: serving.call, -1: decoding.call, 0: operator.call}
        for step in itertools.count():
            if not engine.has_unfinished_requests():
                break
            self._step(meters[life.counts(step)], serving.call)
        return _Served(self._cost(adding), self._cost(serving).without(self._cost(decoding)))

    def abort(self, count: int, num_aborted: int) -> Cost:
        """Abort the last of ``count`` running requests, and the next steps of the others."""
        engine, meter = self._engine, Meter()
        indices = self._add(count, _RUNNING, operator.call)
        for _ in range(_STEPS_BEFORE):
            self._step(operator.call)
        for index in indices[count - num_aborted :]:
            meter.call(engine.abort_request, index)
        for _ in range(_STEPS_AFTER):
            self._step(meter.call)
        abort_all(self._engine, indices)
        return self._cost(meter)

    def preempt(self, count: int) -> Cost | None:
        """The first step that preempts, less the next, if that has as many rows and none ends."""
        engine = self._engine
        engine.step()  # idle: what it has learnt of a full cache may be forgotten then
        longest = max(len(self._prompt(i)) for i in range(count))
        indices = self._add(count, self._schedule.max_model_len - longest, operator.call)
        found, last, num_before, rows_before = None, Meter(), 0, 0
        while engine.has_unfinished_requests() and found is None:
            meter, before = Meter(), _num_preemptions(engine)
            rows = sum(map(len, self._step(meter.call)))
            num_preempted = _num_preemptions(engine) - before
            if num_before and not num_preempted and rows == rows_before:
                found = self._cost(last).without(self._cost(meter)).per(num_before)
            last, num_before, rows_before = meter, num_preempted, rows
        abort_all(engine, indices)
        return found

    def move_on(self, count: int) -> None:
        """Let as many requests as steps come and go: no window begins where the last one did."""
        if count:
            indices = self._add(count, _RUNNING, operator.call)
            for _ in range(count):
                self._step(operator.call)
            abort_all(self._engine, indices)

    def _cost(self, meter: Meter) -> Cost:
        functions = meter.functions()
        self.ran.update(map(RanFunction.counted, functions))
        return Cost.of(functions)

    def _add(self, count: int, num_tokens: int, call: _Call) -> list[int]:
        params = replace(
            self._params,
            max_tokens=num_tokens,
            min_tokens=min(self._schedule.min_tokens, num_tokens),
        )
        indices = list(range(self._next, self._next + count))
        self._next += count
        self._num_crowds += 1
        for i, index in enumerate(indices):
            # Turned one token further each time: a prefix cache must not know it.
            prompt = np.ascontiguousarray(np.roll(self._prompt(i)[::-1], self._num_crowds))
            call(self._engine.add_request, index, prompt, params)
        return indices

    def _prompt(self, i: int) -> Int32Array:
        longest = min(_RUNNINGEST_PROMPT, self._schedule.max_model_len - _RUNNING)
        return self._schedule.prompt_token_ids(i, self._engine.vocab_size)[:longest]

    def _step(self, call: _Call, call_taking: _Call = operator.call) -> list[list[int]]:
        """Who got tokens, if there was anybody; what has ended is taken."""
        engine, got = self._engine, []
        if engine.has_unfinished_requests():
            for delivered in call(engine.step).delivered:
                got.append(delivered.request_index.tolist())
                take(delivered, self._streams)
                for index in delivered.finished.tolist():
                    for taken in self._taking:
                        call_taking(taken, index)
        return got


def _num_preemptions(engine: StepEngine) -> int:
    return engine.scheduler_stats().get("num_preemptions", 0)


class RequestCosts(NamedTuple):
    """By call: what it costs in the window that is like most, and what each window counted. And
    what has run in all of them.
    """

    costs: dict[str, Cost]
    windows: dict[str, list[Counted]]
    ran: Sequence[RanFunction] = ()


def request_costs(
    engine: StepEngine,
    schedule: Schedule,
    batch_size: int,
    streams: Streams | None = None,
    output_text: Callable[[int], str] | None = None,
) -> RequestCosts:
    """What a request takes to ``add``, to ``finish`` (being served included), to ``abort`` and,
    where the engine has preempted any so far, to ``preempt``.

    The engine must be idle. A request is scheduled first, computes its prompt, ends, and its tokens
    and text are taken; what its decode steps cost is in no figure here. It has 64 tokens, or 32
    where the schedule is shorter, and otherwise one, as where drafts or preemptions move its steps.
    Two crowds of them are served, one larger: what a step costs whoever is in it is not in their
    difference, also where not all steps cost it. An abort is counted with the steps after it, less
    those of as many other requests without one. All that is counted in three windows: what an
    engine does every so many steps or requests is nobody's own, and falls into one of them and not
    into another. Nothing where the longest request of the schedule has no more than 18 tokens.
    """
    if schedule.max_model_len <= _RUNNING:
        return RequestCosts({}, {})
    count = min(_MOST_REQUESTS, batch_size, schedule.num_requests)
    before, callbacks = snapshot(), gc.callbacks[:]
    gc.disable()
    gc.callbacks.clear()  # they would put objects into the free lists again
    try:
        visitors = _Visitors(engine, schedule, streams, output_text)
        with OpcodeCounter.instrumented():
            visitors.abort(count, (count + 1) // 2)
            # The second group of one request alone has none, and no steps.
            lives = visitors.lives(count, max(1, count // 2))
            windows = []
            for shift in _SHIFTS:
                visitors.move_on(min(shift, count))
                windows.append(_window(visitors, count, lives))
            if _num_preemptions(engine):
                most = min(_MOST_PREEMPTING, batch_size, schedule.num_requests)
                for window in windows:
                    if (cost := visitors.preempt(most)) is not None:
                        window["preempt"] = cost
    finally:
        gc.callbacks[:] = callbacks
        restore(before)
    calls = [call for call in windows[-1] if all(call in window for window in windows)]
    counted = {call: [window[call].counted for window in windows] for call in calls}
    costs = {call: windows[_like_most(each)][call] for call, each in counted.items()}
    return RequestCosts(costs, counted, sorted(visitors.ran))


def _like_most(counted: list[Counted]) -> int:
    """The place of the first window that counts what most do, or of the first."""
    return max(range(len(counted)), key=lambda place: (counted.count(counted[place]), -place))


def _window(visitors: _Visitors, count: int, lives: Sequence[_Life]) -> dict[str, Cost]:
    num_aborted = (count + 1) // 2
    fewer = count // 2
    served: list[_Served] = []
    for crowd, life in zip((count, fewer), lives, strict=True):
        # What an engine tidies up in the step after an end, a life finds of the one before.
        visitors.serve(crowd)
        served.append(visitors.serve(crowd, life))
    others = count - num_aborted
    aborted, undisturbed = visitors.abort(count, num_aborted), visitors.abort(others, 0)
    larger, smaller = served
    return {
        "add": larger.add.without(smaller.add).per(count - fewer),
        "finish": larger.rest.without(smaller.rest).per(count - fewer),
        "abort": aborted.without(undisturbed).per(num_aborted),
    }


def cost_metrics(costs: RequestCosts) -> dict[str, float | None]:
    """Bytecodes and allocations per request that is added, served and aborted; None: not told."""
    metrics: dict[str, float | None] = {}
    for call, windows in costs.windows.items():
        for figure, counted in zip(Counted._fields, zip(*windows, strict=True), strict=True):
            metrics[f"{figure}_per_{call}"] = usual_count(counted)
    return metrics

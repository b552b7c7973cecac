"""What each stage of a step takes in one of an engine's processes, by a meter that is given.

A table's functions are replaced, where they are imported, for as long as somebody counts. What a
stage calls belongs to it, up to the next function that is one.
"""

import inspect
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Generator, Mapping
from typing import Any, NamedTuple

from engines.protocol import StageCost, StageMeter

EVENT_LOOP = "event loop"


class StageFunction(NamedTuple):
    """A stage, and the module and qualified name of a function that is one."""

    stage: str
    module: str
    name: str


class StageTable(NamedTuple):
    """Functions, coroutines and asynchronous generators that are stages; what ``own_files`` contain
    is left out. ``inner``: stages of functions within others, which bytecodes are counted by.
    """

    calls: tuple[StageFunction, ...]
    coroutines: tuple[StageFunction, ...]
    streams: tuple[StageFunction, ...]
    own_files: tuple[str, ...]
    inner: Mapping[str, str] = {}


class ProcessStages:
    """The stages of this process, from now until `end`."""

    def __init__(self, meter: StageMeter, table: StageTable) -> None:
        self._meter = meter
        self._table = table
        # No `Counter`, whose way to answer 0 is Python's and would be counted.
        self._calls: defaultdict[str, int] = defaultdict(int)
        self._replaced: list[tuple[Any, str, Any]] = []
        for functions, wrap in (
            (table.calls, self._call),
            (table.coroutines, self._coroutine),
            (table.streams, self._stream),
        ):
            for each in functions:
                self._replace(each, wrap)

    def _replace(
        self, function: StageFunction, wrap: Callable[[str, Callable[..., Any]], Callable[..., Any]]
    ) -> None:
        owner_name, _, name = function.name.partition(".")
        owner = getattr(sys.modules.get(function.module), owner_name, None)
        if owner is None or name not in vars(owner):
            return
        own = vars(owner)[name]
        self._replaced.append((owner, name, own))
        setattr(owner, name, wrap(function.stage, own))

    def _call(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.iscoroutinefunction(function):  # in some releases it is one
            return self._coroutine(stage, function)
        run, calls = self._meter.run, self._calls

        def call(*args: Any, **kwargs: Any) -> Any:
            calls[stage] += 1
            return run(stage, function, *args, **kwargs)

        return call

    def _coroutine(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        meter, calls = self._meter, self._calls

        async def call(*args: Any, **kwargs: Any) -> Any:
            calls[stage] += 1
            return await _Resumed(meter, stage, function(*args, **kwargs))

        return call

    def _stream(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        meter, calls = self._meter, self._calls

        async def counted(stream: Any) -> AsyncIterator[Any]:
            try:
                while True:
                    calls[stage] += 1
                    try:
                        item = await _Resumed(meter, stage, stream.__anext__())
                    except StopAsyncIteration:
                        return
                    yield item
            finally:
                await stream.aclose()

        def call(*args: Any, **kwargs: Any) -> Any:
            return counted(function(*args, **kwargs))

        return call

    def end(self, role: str) -> list[StageCost]:
        """Put the functions back; what was counted."""
        for owner, name, own in reversed(self._replaced):
            setattr(owner, name, own)
        calls, coroutines, streams, own_files, inner = self._table
        stages = {each.name: each.stage for each in (*calls, *coroutines, *streams)} | {**inner}
        totals = self._meter.totals(stages, (*own_files, __file__))
        return [
            StageCost(role, stage, self._calls[stage] or 1, amount)
            for stage, amount in totals.items()
        ]


class _Resumed:
    """Something awaited, of which each part between two waits is counted."""

    def __init__(self, meter: StageMeter, stage: str, awaited: Any) -> None:
        self._meter = meter
        self._stage = stage
        self._awaited = awaited

    def __await__(self) -> Generator[Any, Any, Any]:
        run, stage, inner = self._meter.run, self._stage, self._awaited.__await__()
        resume: Callable[..., Any] = inner.send
        value: Any = None
        while True:
            try:
                waits_for = run(stage, resume, value)
            except StopIteration as end:
                return end.value
            try:
                value = yield waits_for
                resume = inner.send
            except BaseException as error:
                resume, value = inner.throw, error

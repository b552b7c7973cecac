"""What one call leaves to the collector, makes for it and executes."""

import gc
import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from inspect import isasyncgen, iscoroutine, isgenerator
from typing import TYPE_CHECKING

from gcbench.opcodes import OpcodeCounter, tracers

if TYPE_CHECKING:
    from gcbench.function_costs import FunctionCost

_WARM_UPS = 2
_COUNT_OFFSET = 100_000


class UncountableCall(RuntimeError):  # noqa: N818
    """Counts would be wrong: something else traces this thread, or the collector ran."""


@dataclass(frozen=True, slots=True)
class CallCost:
    """What one call over so many requests did; whole numbers per call, None where not traced.

    ``survivors``: tracked objects after the call less those before it, its result included.
    ``survivors_by_type``: the types of which there are more than before, the most first.
    ``peak``: largest rise of the collector's young count over its value before the call.
    ``allocations``: sum of its rises from bytecode to bytecode. ``bytecodes``: those executed.
    ``functions``: who made and executed them, by line, the most bytecodes first; they add up.
    """

    name: str
    num_requests: int
    survivors: int
    survivors_by_type: dict[str, int]
    peak: int | None = None
    allocations: int | None = None
    bytecodes: int | None = None
    functions: "list[FunctionCost]" = field(default_factory=list)

    def per_request(self) -> dict[str, float]:
        """Objects or bytecodes per request by name; without what was not traced."""
        counts = {
            "survivors": self.survivors,
            "peak": self.peak,
            "allocations": self.allocations,
            "bytecodes": self.bytecodes,
        }
        return {name: n / self.num_requests for name, n in counts.items() if n is not None}


def measure_call(call: Callable[[], object], num_requests: int, *, traced: bool = True) -> CallCost:
    """Measure ``call``, which handles a step of ``num_requests`` requests, collector off.

    It runs three times, the last for survivors; with ``traced`` once more under
    `gcbench.opcodes.OpcodeCounter` for the other counts. What it raises goes through. Raises
    TypeError and ValueError for arguments that cannot be meant, UncountableCall.
    """
    __tracebackhide__ = True
    if not callable(call):
        raise TypeError(f"{call!r} cannot be called; pass the function that takes the step.")
    num_requests = operator.index(num_requests)
    if num_requests < 1:
        raise ValueError(f"num_requests is {num_requests}; a step has at least one request.")
    name = getattr(call, "__qualname__", None) or type(call).__qualname__
    if traced:
        _refuse_other_tracers(name)
    with _collector_off(), OpcodeCounter.instrumented() if traced else nullcontext():
        for _ in range(_WARM_UPS):
            _refuse_unrun(name, call())
        survivors, by_type = _survivors(call)
        if not traced:
            return CallCost(name, num_requests, survivors, by_type)
        return CallCost(name, num_requests, survivors, by_type, *_traced(name, call))


def _survivors(call: Callable[[], object]) -> tuple[int, dict[str, int]]:
    _collect()
    # A tracked key makes them tracked already, so both sides count them.
    before: dict[type, int] = {CallCost: 0}
    after: dict[type, int] = {CallCost: 0}
    frozen = gc.get_freeze_count()
    _count_types(before)
    result = call()
    _count_types(after)
    del result
    risen = {kind: n - before.get(kind, 0) for kind, n in after.items()}
    by_type: dict[str, int] = {}
    for kind, rise in sorted(risen.items(), key=lambda item: -item[1]):
        if rise > 0:
            by_type[kind.__qualname__] = by_type.get(kind.__qualname__, 0) + rise
    total = sum(after.values()) - sum(before.values())
    return total + gc.get_freeze_count() - frozen, by_type


def _count_types(into: dict[type, int]) -> None:
    for each in gc.get_objects():
        kind = type(each)
        into[kind] = into.get(kind, 0) + 1


def _traced(name: str, call: Callable[[], object]) -> "tuple[int, int, int, list[FunctionCost]]":
    from gcbench.function_costs import counted_calls  # before the lists below are emptied

    __tracebackhide__ = True
    num_collections = _num_collections() + 1
    counter = OpcodeCounter()  # what making it frees goes to the free lists that are emptied next
    _collect()
    # The count stops at zero when older objects die; from here on it never gets there.
    offset: list[list[None]] = [[] for _ in range(_COUNT_OFFSET)]
    with counter:
        result = call()
    if counter.is_disturbed:
        raise UncountableCall(
            f"{name} set a trace or profile function of its own; take that out of the call."
        )
    if _num_collections() != num_collections:
        raise UncountableCall(
            f"The collector ran within {name}, so what it allocated cannot be counted; "
            "take gc.collect() and gc.enable() out of the call."
        )
    del result, offset
    functions = counted_calls(counter.tree, {}).functions
    return counter.peak, counter.num_allocations, counter.num_opcodes, functions


@contextmanager
def _collector_off() -> Iterator[None]:
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        (gc.enable if enabled else gc.disable)()


def _collect() -> None:
    # A full pass empties the free lists, and callbacks would put objects into them again.
    callbacks = gc.callbacks[:]
    gc.callbacks.clear()
    try:
        gc.collect()
    finally:
        gc.callbacks[:] = callbacks


def _num_collections() -> int:
    return sum(generation["collections"] for generation in gc.get_stats())


def _refuse_other_tracers(name: str) -> None:
    __tracebackhide__ = True
    if others := tracers():
        raise UncountableCall(
            f"Cannot count what {name} allocates and executes: {others[0]!r} traces this thread "
            "(coverage or a debugger?); run this test without it, or budget survivors alone."
        )


def _refuse_unrun(name: str, result: object) -> None:
    __tracebackhide__ = True
    if iscoroutine(result):
        result.close()
        raise TypeError(f"{name} only makes a coroutine; pass a function that runs it.")
    if isgenerator(result) or isasyncgen(result):
        raise TypeError(f"{name} only makes a generator; pass a function that exhausts it.")

"""What a request costs to add, to finish and to abort: known work is found where it was done."""

import dis
import gc
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from small import schedule

from engines.protocol import SamplingParams, StepOutput
from harness.trial.request_costs import request_costs

pytestmark = pytest.mark.usefixtures("frozen_heap")

OF = schedule([40] * 64)
CALLS = ("add", "finish", "abort")


def less(a: int) -> int:
    return a + 1


def more(a: int) -> int:
    b = a + 1
    c = (a, b)
    d = [a, b, c]
    return d[0] - b


def made(kind: str) -> Callable[[int], object]:
    """A function whose result is one tracked object; CPython has free lists for most kinds."""
    namespace: dict[str, Callable[[int], object]] = {}
    sources = {"list": "[a]", "dictionary": "{a: KEPT}", "tuple": "(a, KEPT)", "set": "{a}"}
    exec(f"def make(a):\n return {sources[kind]}", {"KEPT": []}, namespace)
    return namespace["make"]


class Toy:
    """Does ``work`` for each request that is added, finished or aborted, and keeps the results.

    ``lag``: a step brings what the one before computed. ``tidies_later``: the work of an end is
    done in the step after it, if there is one.
    """

    vocab_size = 100

    def __init__(
        self, work: dict[str, Callable[[int], object]], lag: int = 0, tidies_later: bool = False
    ) -> None:
        self._work = {call: work.get(call, less) for call in (*CALLS, "step")}
        self._lag = lag
        self._tidies_later = tidies_later
        self._left: dict[int, int] = {}
        self._ended: list[Callable[[int], object]] = []
        self._num_steps = 0
        self._kept: list[object] = [None] * 100_000
        self._place = 0

    def _do(self, function: Callable[[int], object]) -> None:
        self._kept[self._place] = function(1)
        self._place += 1

    def _end(self, index: int, call: str) -> None:
        del self._left[index]
        if self._tidies_later:
            self._ended.append(self._work[call])
        else:
            self._do(self._work[call])

    def add_request(self, index: int, prompt: object, params: SamplingParams) -> None:
        self._do(self._work["add"])
        if not self._left:
            self._num_steps = 0
        self._left[index] = params.max_tokens

    def abort_request(self, index: int) -> None:
        if index in self._left:
            self._end(index, "abort")

    def has_unfinished_requests(self) -> bool:
        return bool(self._left)

    def step(self) -> StepOutput:
        while self._ended:
            self._do(self._ended.pop())
        self._num_steps += 1
        rows, finished = [], []
        if self._num_steps > self._lag:
            for index in list(self._left):
                rows.append(index)
                self._do(self._work["step"])
                self._left[index] -= 1
                if not self._left[index]:
                    finished.append(index)
                    self._end(index, "finish")
        counts = np.ones(len(rows), np.int32)
        reasons = np.ones(len(finished), np.int8)
        return StepOutput(
            np.array(rows, np.int64), counts, (), np.array(finished, np.int64), reasons
        )

    def output_token_ids(self, index: int) -> np.ndarray:
        return np.zeros(1, np.int32)


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


SHIFTS = [{}, {"lag": 1}, {"tidies_later": True}, {"lag": 1, "tidies_later": True}]


@pytest.mark.parametrize("shift", SHIFTS, ids=["plain", "lag", "later", "both"])
@pytest.mark.parametrize("call", CALLS)
def test_bytecodes_are_those_that_dis_shows_and_of_the_call_that_executes_them(call, shift):
    written = [sum(1 for _ in dis.get_instructions(f)) for f in (less, more)]
    plain, planted = (request_costs(Toy({call: work}, **shift), OF, 64) for work in (less, more))
    rises = {name: planted[name] - plain[name] for name in plain if name.startswith("bytecodes")}
    expected = dict.fromkeys(rises, 0.0) | {f"bytecodes_per_{call}": written[1] - written[0]}
    assert rises == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("shift", SHIFTS[:2], ids=["plain", "lag"])
def test_what_a_step_costs_is_in_no_request_s_figure(shift):
    plain, planted = (request_costs(Toy({"step": w}, **shift), OF, 64) for w in (less, more))
    assert planted == pytest.approx(plain, abs=1e-9)


@pytest.mark.parametrize("kind", ["list", "dictionary", "tuple", "set"])
@pytest.mark.parametrize("call", CALLS)
def test_an_object_that_each_request_keeps_is_counted_though_it_has_a_free_list(call, kind):
    spare = [made(kind)(1) for _ in range(200)]
    del spare  # to the free list
    plain, planted = (request_costs(Toy({call: w}), OF, 64) for w in (less, made(kind)))
    rises = {name: planted[name] - plain[name] for name in plain if name.startswith("alloc")}
    expected = dict.fromkeys(rises, 0.0) | {f"allocations_per_{call}": 1.0}
    assert rises == pytest.approx(expected, abs=1e-9)

"""What a request costs to add, to finish and to abort: known work is found where it was done."""

import dis
import gc
from collections.abc import Callable
from functools import cache

import msgspec
import numpy as np
import pytest
from examples import some
from small import CELL, engine, schedule

from engines.protocol import Delivered, SamplingParams, StepOutput
from harness.trial.client import warm_up
from harness.trial.request_costs import cost_metrics, request_costs
from harness.trial.step_costs import change_of, usual_count

pytestmark = pytest.mark.usefixtures("no_collector")
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

    "first" is done for each request's first token, "step" for each later one, "usual step" once in
    most steps, "token ended" and "token taken" for each token of a request that ends or is taken,
    "sometimes" in each step whose number divided by ``every`` leaves ``rest``.
    ``lag``: a step brings what the one before computed. ``tidies_later``: the work of an end is
    done in the step after it, if there is one. With ``room`` for so many tokens of output in all
    the last ones are "preempted" once they have more: they begin anew when others have ended.
    """

    vocab_size = 100

    def __init__(
        self,
        work: dict[str, Callable[[int], object]],
        lag: int = 0,
        tidies_later: bool = False,
        every: int = 0,
        rest: int = 0,
        room: int = 0,
    ) -> None:
        calls = (
            *CALLS,
            "preempted",
            "first",
            "step",
            "usual step",
            "sometimes",
            "token ended",
            "token taken",
        )
        self._work = {call: work.get(call, less) for call in calls}
        self._lag = lag
        self._tidies_later = tidies_later
        self._left: dict[int, int] = {}
        self._num_tokens: dict[int, int] = {}
        self._waiting: set[int] = set()
        self._ended: list[Callable[[int], object]] = []
        self._num_steps = self._num_all_steps = 0
        self._every, self._rest = every, rest
        self._kept: list[object] = [None] * 100_000
        self._place = 0
        self._room = room
        self._set_aside: list[int] = []
        self._num_preempted = int(room > 0)  # one in the window before

    def scheduler_stats(self) -> dict[str, int]:
        return {"num_preemptions": self._num_preempted}

    def _make_room(self) -> None:
        held = {index: self._num_tokens[index] - left + 1 for index, left in self._left.items()}
        while self._room and sum(held.values()) > self._room and len(held) > 1:
            index, _ = held.popitem()
            del self._left[index]
            self._set_aside.append(index)
            self._num_preempted += 1
            self._do(self._work["preempted"])

    def _do(self, function: Callable[[int], object]) -> None:
        self._kept[self._place] = function(1)
        self._place += 1

    def end(self, index: int, call: str) -> None:
        del self._left[index]
        if self._tidies_later:
            self._ended.append(self._work[call])
        else:
            self._do(self._work[call])

    def add_request(self, index: int, prompt: object, params: SamplingParams) -> None:
        self._do(self._work["add"])
        if not self._left:
            self._num_steps = 0
        self._left[index] = self._num_tokens[index] = params.max_tokens
        self._waiting.add(index)

    def abort_request(self, index: int) -> None:
        if index in self._set_aside:
            self._set_aside.remove(index)
        if index in self._left:
            self.end(index, "abort")

    def has_unfinished_requests(self) -> bool:
        return bool(self._left or self._set_aside)

    def step(self) -> StepOutput:
        if not self._left:
            self._left = {index: self._num_tokens[index] for index in self._set_aside}
            self._set_aside.clear()
        self._make_room()
        while self._ended:
            self._do(self._ended.pop())
        self._num_steps += 1
        self._num_all_steps += 1
        if self._every and self._num_all_steps % self._every == self._rest:
            self._do(self._work["sometimes"])
        if self._num_steps % 16 != 1:
            self._do(self._work["usual step"])
        rows, finished = [], []
        if self._num_steps > self._lag:
            for index in list(self._left):
                rows.append(index)
                self._do(self._work["first" if index in self._waiting else "step"])
                self._waiting.discard(index)
                self._left[index] -= 1
                if not self._left[index]:
                    finished.append(index)
                    for _ in range(self._num_tokens[index]):
                        self._work["token ended"](1)
                    self.end(index, "finish")
        counts = np.ones(len(rows), np.int32)
        reasons = np.ones(len(finished), np.int8)
        delivered = Delivered(
            np.array(rows, np.int64), counts, (), np.array(finished, np.int64), reasons
        )
        return StepOutput((delivered,))

    def output_token_ids(self, index: int) -> np.ndarray:
        for _ in range(self._num_tokens.pop(index)):
            self._work["token taken"](1)
        return np.zeros(1, np.int32)


SHIFTS = {"plain": (0, False), "lag": (1, False), "later": (0, True), "both": (1, True)}


def metrics(toy: Toy) -> dict[str, float | None]:
    """What its requests cost, all functions together."""
    return cost_metrics(request_costs(toy, OF, 64))


@cache
def plain(shift: str) -> dict[str, float | None]:
    """What requests cost where each call does as little as another."""
    return metrics(Toy({}, *SHIFTS[shift]))


def rises(planted: dict[str, Callable[[int], object]], shift: str, counted: str) -> dict:
    """How much more a planted toy costs than a plain one, by call."""
    found, before = metrics(Toy(planted, *SHIFTS[shift])), plain(shift)
    return {
        call: found[f"{counted}_per_{call}"] - before[f"{counted}_per_{call}"] for call in CALLS
    }


@pytest.mark.slow
@pytest.mark.parametrize("shift", SHIFTS)
@pytest.mark.parametrize("call", CALLS)
def test_bytecodes_are_those_that_dis_shows_and_of_the_call_that_executes_them(call, shift):
    written = [sum(1 for _ in dis.get_instructions(f)) for f in (less, more)]
    expected = dict.fromkeys(CALLS, 0.0) | {call: written[1] - written[0]}
    assert rises({call: more}, shift, "bytecodes") == pytest.approx(expected, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("work", ["step", "usual step"])
@pytest.mark.parametrize("shift", ["plain", "lag"])
def test_what_a_decode_step_costs_is_in_no_request_s_figure(shift, work):
    """Neither what it costs each request in it, nor what most steps cost but those with a start."""
    found = metrics(Toy({work: more}, *SHIFTS[shift]))
    assert found == pytest.approx(plain(shift), abs=1e-9)


@pytest.mark.parametrize("shift", ["plain", "lag"])
def test_the_step_of_the_first_token_belongs_to_the_request_at_its_own_price(shift):
    """Also where decode steps, of which none is like it, become cheaper or dearer meanwhile."""
    written = [sum(1 for _ in dis.get_instructions(f)) for f in (less, more)]
    expected = dict.fromkeys(CALLS, 0.0) | {"finish": written[1] - written[0]}
    for planted in ({"first": more}, {"first": more, "step": more}):
        assert rises(planted, shift, "bytecodes") == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("shift", ["plain", "lag"])
@pytest.mark.parametrize("work", ["token ended", "token taken"])
@pytest.mark.parametrize(
    ("of", "num_tokens"), [(OF, 32), (schedule([100] * 64), 64), (schedule([20] * 64), 1)]
)
def test_what_each_token_of_a_request_costs_at_its_end_is_the_request_s(
    shift, work, of, num_tokens
):
    written = [sum(1 for _ in dis.get_instructions(f)) for f in (less, more)]
    plain, planted = (
        cost_metrics(request_costs(Toy(planted, *SHIFTS[shift]), of, 64))
        for planted in ({}, {work: more})
    )
    rise = planted["bytecodes_per_finish"] - plain["bytecodes_per_finish"]
    assert rise == pytest.approx(num_tokens * (written[1] - written[0]), abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("every_nth", [5, 16, 32, 50])
def test_what_is_done_every_so_many_steps_is_no_request_s_wherever_it_begins(every_nth):
    """Counted in one window it would be more, or fewer, of whatever was counted in it."""
    before = request_costs(Toy({}), OF, 64).windows
    for rest in some(range(every_nth)):
        after = request_costs(Toy({"sometimes": more}, every=every_nth, rest=rest), OF, 64).windows
        for call, windows in after.items():
            for then, now in zip(
                zip(*before[call], strict=True), zip(*windows, strict=True), strict=True
            ):
                assert not change_of(then, now)


@pytest.mark.parametrize(
    ("counted", "usual"),
    [([5, 5, 5], 5), ([9, 5, 5], 5), ([9, 5, 7], None), ([5, 5, -1], None), ([-1, -1, -1], None)],
)
def test_a_count_is_what_most_windows_have_counted_and_none_is_below_nothing(counted, usual):
    assert usual_count(counted) == usual


@pytest.mark.parametrize("kind", ["list", "dictionary", "tuple", "set"])
def test_an_object_that_each_request_keeps_is_counted_though_it_has_a_free_list(kind):
    spare = [made(kind)(1) for _ in range(200)]
    del spare  # to the free list
    found = rises(dict.fromkeys(CALLS, made(kind)), "plain", "allocations")
    assert found == pytest.approx(dict.fromkeys(CALLS, 1.0), abs=1e-9)


@pytest.mark.parametrize("call", CALLS)
def test_the_function_that_a_request_runs_is_named_with_what_it_costs(call):
    before, after = (
        request_costs(Toy(planted), OF, 64).costs[call] for planted in ({}, {call: more})
    )
    changes = {each.name: each for each in after.without(before).by_function()}
    num_opcodes = [each.opname for each in dis.get_instructions(more)].index("RETURN_VALUE")
    assert changes.pop("more").bytecodes == num_opcodes
    assert set(changes) <= {"less"}
    assert after.bytecodes == sum(each.bytecodes for each in after.by_function())


def test_what_has_run_is_told_by_line():
    toy = Toy({"abort": more})
    ran = {(each.name, line) for each in request_costs(toy, OF, 64).ran for line in each.lines}
    assert ("more", more.__code__.co_firstlineno + 3) in ran
    last = max(line for *_, line in Toy.end.__code__.co_lines() if line)
    assert ("Toy.end", last) in ran
    tidied = Toy.end.__code__.co_firstlineno + 3
    assert ("Toy.end", tidied) not in ran, "no end was tidied later"


def test_the_collector_is_left_as_it_was():
    gc.enable()
    before = gc.isenabled(), gc.get_threshold(), gc.get_freeze_count(), list(gc.callbacks)
    collections = gc.get_stats()[0]["collections"]
    request_costs(Toy({}), OF, 64)
    assert before == (gc.isenabled(), gc.get_threshold(), gc.get_freeze_count(), gc.callbacks)
    assert gc.get_stats()[0]["collections"] == collections, "it did not run by itself"
    gc.disable()


def test_requests_too_short_for_two_lives_have_no_figures():
    assert request_costs(Toy({}), schedule([15] * 64), 64).costs == {}
    assert request_costs(Toy({}), schedule([16] * 64), 64).costs != {}


@pytest.mark.parametrize(
    "axes",
    [
        {"batch_size": 1},
        {"output_processing": "overlapped", "prefix_caching": "on"},
        {"num_gpu_blocks_override": 5, "max_num_batched_tokens": 16},
        {"detokenizer": "byte_table", "request_streams": "collector"},
        pytest.param({"worker": "process"}, marks=pytest.mark.slow),
    ],
    ids=lambda axes: next(iter(axes)),
)
def test_an_engine_is_idle_again_and_counts_the_same_once_more(axes):
    of = schedule([40] * 16)
    served = engine(of, msgspec.structs.replace(CELL, **axes))
    try:
        streams = served.request_stream if "request_streams" in axes else None
        warm_up(served, of, 8, streams=streams)
        first, again = (cost_metrics(request_costs(served, of, 8, streams)) for _ in range(2))
        assert not served.has_unfinished_requests()
        calls = 4 if "num_gpu_blocks_override" in axes else 3
        assert len(first) == 2 * calls
        # What the others cost may follow the block pool's queue, tidied up once in many requests.
        for name in ("bytecodes_per_add", "allocations_per_add"):
            assert again[name] == first[name] > 0
    finally:
        served.shutdown()


def test_what_is_done_for_a_preempted_request_alone_is_what_it_costs_to_preempt():
    plain, planted = (metrics(Toy({"preempted": work}, room=700)) for work in (less, more))
    written = [sum(1 for _ in dis.get_instructions(f)) for f in (less, more)]
    rise = planted["bytecodes_per_preempt"] - plain["bytecodes_per_preempt"]
    assert rise == written[1] - written[0]
    assert "bytecodes_per_preempt" not in metrics(Toy({}))
    others = {name for name in plain if "preempt" not in name}
    assert {name for name in others if planted[name] != plain[name]} == set()

"""The client: who is sent when, what it holds, and that it reads what the engine made."""

import gc
import time
from dataclasses import replace
from itertools import pairwise

import msgspec
import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from small import CELL, engine, schedule

from engines.builtin.delivery.outputs import RequestOutput
from engines.protocol import PHASES, SamplingParams, StepOutput
from harness.trial.client import TrialClient, sampling_params, warm_up
from harness.trial.clock import VIRTUAL_STEP_NS, PausedClock, RealClock, VirtualClock
from harness.trial.recorder import STEP_COLUMNS

VIRTUAL_STEP_SECONDS = VIRTUAL_STEP_NS / 1e9


class Onlooker:
    """Takes an engine's steps and notes, for each, when it ran and what was in flight."""

    def __init__(self, of, cell=CELL, clock=None) -> None:
        self.clock = clock or VirtualClock()
        self.engine = engine(of, cell)
        self.client = TrialClient(self.engine, self.step, of, self.clock)
        self.opened = self.clock.now()
        self.sent: list[tuple[int, float]] = []
        self.asked: list[tuple[SamplingParams, int]] = []
        self.ended: dict[int, float] = {}
        self.in_flight: list[int] = []
        self._running = 0
        self._add, self.engine.add_request = self.engine.add_request, self.add_request

    def add_request(self, index, prompt, params, priority=0) -> None:
        self.sent.append((index, (self.clock.now() - self.opened) / 1e9))
        self._running += 1
        self.asked.append((params, priority))
        self._add(index, prompt, params, priority)

    def step(self) -> StepOutput:
        self.in_flight.append(self._running)
        output = self.engine.step()
        now = (self.clock.now() + VIRTUAL_STEP_NS - self.opened) / 1e9
        for each in output.delivered:
            self._running -= len(each.finished)
            self.ended |= dict.fromkeys(each.finished.tolist(), now)
        return output


schedules = st.builds(
    lambda lens, gaps, cap, accepted, retain: schedule(
        lens,
        arrival_seconds=np.cumsum(np.resize(gaps, len(lens))) / 1000,
        max_concurrency=cap,
        num_accepted=accepted,
        retain=retain,
    ),
    lens=st.lists(st.integers(1, 12), min_size=1, max_size=20),
    gaps=st.lists(st.integers(0, 60), min_size=1, max_size=20),
    cap=st.integers(0, 6),
    accepted=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    retain=st.sampled_from(["step", "finish"]),
)


@examples(60)
@given(schedules)
def test_everyone_is_sent_in_order_when_due_and_within_the_cap(of):
    seen = Onlooker(of)
    seen.client.run()
    assert [index for index, _ in seen.sent] == list(range(of.num_requests))
    due = of.arrival_seconds.tolist()
    for index, at in seen.sent:
        assert at >= due[index] - 1e-9
        if not of.max_concurrency:  # late by the step that was under way, at most
            assert at < due[index] + VIRTUAL_STEP_SECONDS + 1e-9
    assert max(seen.in_flight) <= (of.max_concurrency or of.num_requests)
    assert min(seen.in_flight) > 0, "no step of an idle engine"


@examples(60)
@given(schedules)
def test_what_was_asked_is_what_came(of):
    seen = Onlooker(of)
    seen.client.run()
    assert [len(tokens) for tokens in seen.client.tokens] == of.output_lens.tolist()
    requests = seen.client.recorder.requests
    assert requests.num_tokens.tolist() == of.output_lens.tolist()
    assert (requests.finish_reason >= 0).all()
    assert (requests.sent_ns >= requests.scheduled_ns).all()
    assert (requests.first_ns > requests.sent_ns).all()
    assert (requests.last_ns >= requests.first_ns).all()
    sent_ns = [at * 1e9 + seen.opened for _, at in seen.sent]
    assert requests.sent_ns.tolist() == pytest.approx(sent_ns, abs=1)
    assert not seen.engine.has_unfinished_requests()


@st.composite
def conversations(draw):
    of = draw(schedules)
    previous = [draw(st.integers(-1, i - 1)) for i in range(of.num_requests)]
    return replace(of, previous_turn=previous)


@examples(100)
@given(conversations())
def test_turns_are_sent_when_they_are_due_and_the_one_before_has_ended(of):
    seen = Onlooker(of)
    seen.client.run()
    sent = dict(seen.sent)
    assert len(seen.sent) == len(sent) == of.num_requests
    assert [len(tokens) for tokens in seen.client.tokens] == of.output_lens.tolist()
    for index, previous in enumerate(of.previous_turn.tolist()):
        free = max(of.arrival_seconds[index], seen.ended[previous] if previous >= 0 else 0)
        assert sent[index] >= free - 1e-9
        if not of.max_concurrency:  # nobody is held up by anybody else
            assert sent[index] < free + VIRTUAL_STEP_SECONDS + 1e-9
    assert max(seen.in_flight) <= (of.max_concurrency or of.num_requests)
    assert min(seen.in_flight) > 0, "no step of an idle engine"
    in_flight = seen.client.recorder.steps[:, STEP_COLUMNS.index("in_flight")]
    assert in_flight.tolist() == seen.in_flight


def test_a_turn_whose_earlier_one_was_not_served_is_not_sent():
    seen = Onlooker(schedule([50, 2, 2], previous_turn=[-1, 0, -1]))
    seen.client.run(max_steps=7)
    assert [index for index, _ in seen.sent] == [0, 2]
    seen.client.abandon()
    assert not seen.engine.has_unfinished_requests()
    assert seen.client.recorder.requests.sent_ns.tolist() == [1, 0, 1]


def test_each_is_asked_what_the_schedule_says():
    of = schedule(
        [5, 9, 5, 2], min_tokens=4, stop_token_ids=(7,), ignore_eos=False, priorities=[3, 0, -1, 3]
    )
    seen = Onlooker(of)
    seen.client.run()
    params = [
        SamplingParams(length, min(4, length), stop_token_ids=(7,), ignore_eos=False)
        for length in (5, 9, 5, 2)
    ]
    assert seen.asked == list(zip(params, [3, 0, -1, 3], strict=True))


def test_requests_that_ask_the_same_share_one_object():
    of = schedule([5, 9, 5, 2, 2], stop=("end",))
    params = sampling_params(of)
    assert [each.max_tokens for each in params] == [5, 9, 5, 2, 2]
    assert len({id(each) for each in params}) == 3
    assert {each.stop for each in params} == {("end",)}
    assert [each.max_tokens for each in sampling_params(of, most=4)] == [4, 4, 4, 2, 2]


def test_the_tokens_do_not_depend_on_who_was_sent_when():
    lens = [5, 1, 9, 3]
    one_by_one = Onlooker(schedule(lens, max_concurrency=1))
    at_once = Onlooker(schedule(lens))
    spread = Onlooker(schedule(lens, arrival_seconds=[0, 0.001, 5, 5]))
    for each in (one_by_one, at_once, spread):
        each.client.run()
    for i in range(len(lens)):
        assert np.array_equal(at_once.client.tokens[i], one_by_one.client.tokens[i])
        assert np.array_equal(at_once.client.tokens[i], spread.client.tokens[i])


def test_the_collected_tokens_are_those_that_the_steps_delivered():
    of = schedule([4, 7, 2, 7], num_accepted=[1, 3])
    seen = Onlooker(of)
    delivered: dict[int, list[int]] = {i: [] for i in range(4)}

    def step() -> StepOutput:
        output = seen.engine.step()
        for item in [item for each in output.delivered for item in each.outputs]:
            tokens = item.outputs[0].token_ids
            delivered[item.request_index] += [tokens] if isinstance(tokens, int) else tokens
        return output

    client = TrialClient(seen.engine, step, of, VirtualClock())
    client.run()
    assert [tokens.tolist() for tokens in client.tokens] == list(delivered.values())


def test_an_idle_client_jumps_to_the_next_arrival():
    seen = Onlooker(schedule([2, 2], arrival_seconds=[0, 1000]))
    seen.client.run()
    assert seen.sent[1][1] == pytest.approx(1000)
    assert len(seen.in_flight) == 4
    assert seen.clock.now() - seen.opened == 1000 * 10**9 + 2 * VIRTUAL_STEP_NS


def test_steps_that_take_longer_than_the_gaps_send_what_is_due_together():
    arrivals = [0, 0.001, 0.002, VIRTUAL_STEP_SECONDS * 1.5]
    seen = Onlooker(schedule([5] * 4, arrival_seconds=arrivals))
    seen.client.run()
    steps = [round(at / VIRTUAL_STEP_SECONDS) for _, at in seen.sent]
    assert steps == [0, 1, 1, 2]


def test_a_closed_loop_sends_one_for_each_that_finishes():
    seen = Onlooker(schedule([3] * 9, max_concurrency=3))
    seen.client.run()
    assert seen.in_flight == [3] * 9


@pytest.mark.parametrize("retain", ["step", "finish"])
@pytest.mark.parametrize("accepted", [[1], [1, 4, 2]])
@pytest.mark.parametrize("delivery", ["per_request", "columnar"])
def test_streams_bring_what_the_steps_would_have(retain, accepted, delivery):
    of = schedule([4, 7, 2, 7], retain=retain, num_accepted=accepted)
    cell = msgspec.structs.replace(
        CELL, representation="flat_arrays", delivery=delivery, request_streams="collector"
    )
    served, without = engine(of, cell), Onlooker(of)
    taken: dict[int, list[int]] = {i: [] for i in range(4)}

    class Noted:
        def __init__(self, index: int) -> None:
            self.index, self.stream = index, served.request_stream(index)

        def get_nowait(self):
            item = self.stream.get_nowait()
            tokens = item.outputs[0].token_ids
            taken[self.index] += [tokens] if isinstance(tokens, int) else tokens
            return item

    client = TrialClient(served, served.step, of, VirtualClock(), streams=Noted)
    client.run()
    without.client.run()
    tokens = [each.tolist() for each in without.client.tokens]
    assert [each.tolist() for each in client.tokens] == tokens
    assert list(taken.values()) == tokens


def alive() -> int:
    return sum(type(thing) is RequestOutput for thing in gc.get_objects())


@pytest.mark.slow
@pytest.mark.parametrize("retain", ["step", "finish"])
def test_outputs_are_held_as_long_as_the_workload_says(retain):
    of = schedule([2, 5, 5], retain=retain)
    held = []

    class Watched(Onlooker):
        def step(self) -> StepOutput:
            held.append(alive())
            return super().step()

    before = alive()
    seen = Watched(of)
    seen.client.run()
    # Before each step: all outputs of those that are still running, or none at all.
    expected = [0, 3, 4, 6, 8] if retain == "finish" else [0] * 5
    assert [count - before for count in held] == expected
    assert alive() == before


@pytest.mark.parametrize("processing", ["inline", "overlapped"])
def test_warming_up_leaves_the_engine_empty_and_the_tokens_as_they_were(processing):
    cell = msgspec.structs.replace(CELL, output_processing=processing)
    of = schedule([3, 20, 1, 6, 9, 9, 9, 9, 9, 9])
    cold, warm = Onlooker(of, cell), Onlooker(of, cell)
    warm_up(warm.engine, of, CELL.batch_size)
    assert not warm.engine.has_unfinished_requests()
    for each in (cold, warm):
        each.sent.clear()
        each.client.run()
    for mine, other in zip(cold.client.tokens, warm.client.tokens, strict=True):
        assert np.array_equal(mine, other)
    assert len(cold.in_flight) == len(warm.in_flight)


def test_warming_up_fills_the_batch():
    of = schedule([50] * 30)
    seen = Onlooker(of)
    rows = []
    step = seen.engine.step
    seen.engine.step = lambda: rows.append((output := step()).num_rows) or output
    warm_up(seen.engine, of, 8)
    assert rows == [8] * 8


def test_warming_up_tells_a_prefix_cache_nothing_of_what_is_to_come():
    of = schedule([3] * 4, prompt_lens=np.full(4, 40))
    seen, prompts = Onlooker(of), []
    add = seen.engine.add_request
    seen.engine.add_request = lambda index, prompt, params: (
        prompts.append(prompt),
        add(index, prompt, params),
    )
    warm_up(seen.engine, of, 8)
    to_come = [of.prompt_token_ids(i)[:16].tolist() for i in range(4)]
    assert [len(prompt) for prompt in prompts] == [40] * 4
    assert not any(prompt[:16].tolist() in to_come for prompt in prompts)


def test_it_ends_after_so_many_steps():
    seen = Onlooker(schedule([50] * 3))
    seen.client.run(max_steps=7)
    assert len(seen.in_flight) == seen.client.recorder.num_steps == 7
    assert seen.client.recorder.requests.num_tokens.tolist() == [7] * 3
    assert seen.client.tokens == [None] * 3


@pytest.mark.parametrize("processing", ["inline", "overlapped"])
def test_what_is_left_unserved_can_be_abandoned(processing):
    cell = msgspec.structs.replace(CELL, output_processing=processing)
    seen = Onlooker(schedule([50] * 12), cell)
    seen.client.run(max_steps=7)
    before = seen.client.recorder.requests.num_tokens.tolist()
    seen.client.abandon()
    assert not seen.engine.has_unfinished_requests()
    assert seen.client.recorder.num_steps == 7
    assert seen.client.recorder.requests.num_tokens.tolist() == before


def test_the_real_clock_waits_no_shorter_than_asked():
    clock = RealClock()
    moment = clock.now() + 2_000_000
    clock.wait_until(moment)
    assert clock.now() >= moment
    clock.step_done()


def test_a_clock_that_is_stopped_does_not_see_the_time_between(monkeypatch):
    moments = iter([100, 150, 950, 1000, 1030])
    monkeypatch.setattr("time.perf_counter_ns", lambda: next(moments))
    clock, waited = PausedClock(), []
    assert clock.now() == 100
    clock.stop_during(lambda: waited.append(True))
    assert waited == [True]
    assert (clock.away_ns, clock.now(), clock.now()) == (800, 200, 230)


class FakeTime:
    """Moves only when somebody sleeps or polls; sleeps end late."""

    def __init__(self) -> None:
        self.now_ns = 10**9

    def perf_counter_ns(self) -> int:
        return self.now_ns

    def sleep(self, seconds: float) -> None:
        self.now_ns += round(seconds * 1e9) + 90_000

    def poll(self, _timeout: float) -> None:
        self.now_ns += 700


def test_a_clock_that_was_stopped_waits_by_its_own_time(monkeypatch):
    fake = FakeTime()
    monkeypatch.setattr("harness.trial.clock.time", fake)
    monkeypatch.setattr("engines.deadline.time", fake)
    monkeypatch.setattr("engines.deadline.LET_OTHERS_RUN", fake)
    clock = PausedClock()
    clock.stop_during(lambda: fake.sleep(5.0))
    moment = clock.now() + 2_000_000
    clock.wait_until(moment)
    assert moment <= clock.now() < moment + 1_000, "a sleep alone would have overshot"
    clock.wait_until(moment - 10**9)
    assert clock.now() < moment + 1_000, "what is over is not waited for"


def test_what_a_modelled_wait_overran_is_nobodys_time(monkeypatch):
    moments = iter([100, 200, 300])
    monkeypatch.setattr("time.perf_counter_ns", lambda: next(moments))
    clock = PausedClock()
    assert clock.now() == 100
    clock.step_done(late_ns=30)
    assert clock.now() == 200 - 30
    clock.step_done()
    assert clock.now() == 300 - 30


@pytest.mark.parametrize(("slice_steps", "pauses"), [(0, 0), (1, 5), (2, 2), (5, 1), (6, 0)])
def test_a_client_pauses_after_each_slice_and_does_the_same_work(slice_steps, pauses):
    seen, asked = Onlooker(schedule([5, 3]), CELL), []
    seen.client.run(slice_steps=slice_steps, pause=lambda: asked.append(True))
    assert seen.client.recorder.num_steps == 5
    assert len(asked) == pauses
    assert [len(tokens) for tokens in seen.client.tokens] == [5, 3]


def test_the_virtual_clock_moves_by_steps_and_jumps_and_never_back():
    clock = VirtualClock()
    moments = [clock.now()]
    for move in (
        clock.step_done,
        lambda: clock.wait_until(0),
        clock.step_done,
        lambda: clock.wait_until(10**12),
    ):
        move()
        moments.append(clock.now())
    assert [b - a for a, b in pairwise(moments)][:3] == [VIRTUAL_STEP_NS, 0, VIRTUAL_STEP_NS]
    assert moments[0] > 0, "0 means not yet"
    assert moments[-1] == 10**12


def test_what_an_engine_does_before_its_first_stamp_is_the_steps():
    of = schedule([4])
    served = engine(of)

    def hesitant() -> StepOutput:
        until = time.perf_counter_ns() + 1_000_000
        while time.perf_counter_ns() < until:
            pass
        return served.step()

    client = TrialClient(served, hesitant, of, RealClock())
    client.run()
    took = client.recorder.steps[:, STEP_COLUMNS.index("took_ns")]
    stamped = client.recorder.steps[:, len(PHASES)] - client.recorder.steps[:, 0]
    assert (took - stamped >= 1_000_000).all()

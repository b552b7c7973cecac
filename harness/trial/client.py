"""Replays a schedule against an engine: sends who has arrived, steps, stamps, reads."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np

from engines.protocol import (
    Delivered,
    Int32Array,
    RequestStream,
    SamplingParams,
    StepEngine,
    StepOutput,
)
from harness.trial.arrivals import ArrivalSource, BetweenSteps, nanoseconds
from harness.trial.clock import Clock, VirtualClock
from harness.trial.conversations import TurnOrder
from harness.trial.recorder import Recorder
from workloads.schedule import Schedule

Streams = Callable[[int], RequestStream]
"""The stream of a request, by its number."""


def take(delivered: Delivered, streams: Streams | None) -> Sequence[Any]:
    """A step's outputs: its own, or from the stream of each request that got tokens."""
    if streams is None:
        return delivered.outputs
    return [streams(index).get_nowait() for index in delivered.request_index.tolist()]


Take = Callable[[Delivered, Streams | None], Sequence[Any]]


@runtime_checkable
class _Rehearses(Protocol):
    """An engine of which a part may do again what it has done once; another commit's may not."""

    def rehearse(self, serve: Callable[[], object]) -> None:
        """Have ``serve`` serve what will be served next, where a part learns from that."""
        ...


class TrialClient:
    """The one that asks: sends requests, keeps their outputs as long as the workload says.

    ``step`` and ``has_unfinished_requests`` are the engine's own, or look on. Requests arrive
    between steps unless ``arrivals`` says otherwise. ``take`` takes a step's outputs, with
    ``streams`` from there. With ``output_text``, which gives a finished request's text, `texts` are
    filled beside `tokens`. ``waited_ns``: how long others have had the core so far.
    """

    def __init__(
        self,
        engine: StepEngine,
        step: Callable[[], StepOutput],
        schedule: Schedule,
        clock: Clock,
        *,
        has_unfinished_requests: Callable[[], bool] | None = None,
        arrivals: ArrivalSource | None = None,
        streams: Streams | None = None,
        take: Take = take,
        output_text: Callable[[int], str] | None = None,
        waited_ns: Callable[[], int] = int,
    ) -> None:
        count = schedule.num_requests
        self._engine = engine
        self._step = step
        self._has_unfinished = has_unfinished_requests or engine.has_unfinished_requests
        self._clock = clock
        self._waited_ns = waited_ns
        self._arrivals = arrivals or BetweenSteps(schedule.arrival_seconds, clock)
        self._streams = streams
        self._take = take
        self._due_ns = nanoseconds(schedule.arrival_seconds)
        self._prompts = [schedule.prompt_token_ids(i, engine.vocab_size) for i in range(count)]
        for prompt in self._prompts:
            # NumPy describes an array's buffer once, say for pickle, and keeps that with the array,
            # which is ours: it would look like an engine's leak.
            prompt.data.release()
        self._params = sampling_params(schedule)
        self._priorities: list[int] = schedule.priorities.tolist() or [0] * count
        self._turns = TurnOrder(schedule.previous_turn) if len(schedule.previous_turn) else None
        self._cap = schedule.max_concurrency or count
        self._retain = schedule.retain == "finish"
        self._held: list[list[Any] | None] = [None] * count
        self.tokens: list[Int32Array | None] = [None] * count
        self.texts: list[str | None] = [] if output_text is None else [None] * count
        self._output_text = output_text
        self._take_tokens = engine.output_token_ids if output_text is None else self._take_both
        self.recorder = Recorder(count, int(schedule.output_lens.sum()))
        self._next = 0
        self._in_flight = 0

    def run(
        self, max_steps: int = 0, slice_steps: int = 0, pause: Callable[[], None] = lambda: None
    ) -> None:
        """Until every request is served, or for ``max_steps`` steps; ``pause`` after each slice."""
        engine, clock, recorder = self._engine, self._clock, self.recorder
        recorder.requests.scheduled_ns[:] = self._arrivals.open() + self._due_ns
        while True:
            self._send()
            if not self._has_unfinished():
                if self._next == len(self._prompts):
                    return
                self._arrivals.wait_for(self._next)
                continue
            waited_ns = self._waited_ns()
            called = clock.now()
            output = self._step()
            took = clock.now() - called
            clock.step_done(output.late_ns)
            now = clock.now()
            waited_ns = self._waited_ns() - waited_ns
            recorder.step(engine, output, now, self._in_flight, took, waited_ns)
            for delivered in output.delivered:
                at = clock.stamp(delivered.ready_ns) if delivered.ready_ns else now
                recorder.delivery(delivered, at)
                self._read(delivered, now)
                # Held on to, a step's objects would live until the next step has made its own.
                del delivered
            del output
            if max_steps and recorder.num_steps >= max_steps:
                return
            if slice_steps and recorder.num_steps % slice_steps == 0:
                pause()

    def abandon(self) -> None:
        """End what ``max_steps`` has left unserved, a step that is under way included."""
        abort_all(self._engine, range(self._next))

    def forget_answers(self) -> None:
        """Let go of tokens and texts."""
        self.tokens.clear()
        self.texts.clear()

    def _send(self) -> None:
        turns = self._turns
        if turns is not None:
            while turns.ready and self._in_flight < self._cap:
                now = self._clock.now()
                self._queue(turns.ready.popleft(), now, now)
        if self._next == len(self._prompts) or self._in_flight >= self._cap:
            return
        now = self._clock.now()
        while (
            self._next < len(self._prompts)
            and self._in_flight < self._cap
            and (sent_ns := self._arrivals.arrived(self._next, now))
        ):
            index = self._next
            self._next += 1
            if turns is None:
                self._queue(index, sent_ns, now)
            elif turns.may_go(index):
                self._queue(index, max(sent_ns, turns.free_since(index)), now)

    def _queue(self, index: int, sent_ns: int, now_ns: int) -> None:
        self._engine.add_request(
            index, self._prompts[index], self._params[index], self._priorities[index]
        )
        self.recorder.requests.sent_ns[index] = sent_ns
        self.recorder.requests.queued_ns[index] = now_ns
        if self._retain:
            self._held[index] = []
        self._in_flight += 1

    def _read(self, delivered: Delivered, now_ns: int) -> None:
        outputs = self._take(delivered, self._streams)
        if self._retain:
            held = self._held
            # Not strict: a delivery may make no objects at all.
            for index, item in zip(delivered.request_index.tolist(), outputs, strict=False):
                mine = held[index]
                assert mine is not None
                mine.append(item)
        for index in delivered.finished.tolist():
            self._held[index] = None
            self.tokens[index] = self._take_tokens(index)
            self._in_flight -= 1
            if self._turns is not None:
                self._turns.ended(index, now_ns)

    def _take_both(self, index: int) -> Int32Array:
        """The text first: the engine forgets a request with its tokens."""
        assert self._output_text is not None
        self.texts[index] = self._output_text(index)
        return self._engine.output_token_ids(index)


def abort_all(engine: StepEngine, indices: Iterable[int]) -> None:
    """End these requests, and steps that are under way; leave alone what has ended."""
    for index in indices:
        engine.abort_request(index)
    while engine.has_unfinished_requests():
        engine.step()


def sampling_params(schedule: Schedule, most: int = 2**31 - 1) -> list[SamplingParams]:
    """What each request asks, ``most`` tokens at the longest.

    Requests that ask the same share one: none adds a tracked object of its own.
    """
    lens: list[int] = np.minimum(schedule.output_lens, most).tolist()
    shared = {
        length: SamplingParams(
            max_tokens=length,
            min_tokens=min(schedule.min_tokens, length),
            stop_token_ids=schedule.stop_token_ids,
            stop=schedule.stop,
            ignore_eos=schedule.ignore_eos,
        )
        for length in set(lens)
    }
    return [shared[length] for length in lens]


def serve_once(
    engine: StepEngine,
    step: Callable[[], StepOutput],
    schedule: Schedule,
    streams: Streams | None,
    output_text: Callable[[int], str] | None = None,
) -> None:
    """All requests, once, on a clock of their own; nothing of it is kept."""
    clock = VirtualClock()
    TrialClient(engine, step, schedule, clock, streams=streams, output_text=output_text).run()


def warm_up(
    engine: StepEngine,
    schedule: Schedule,
    batch_size: int,
    num_steps: int = 8,
    streams: Streams | None = None,
    *,
    rehearse: bool = False,
) -> None:
    """Bring engine and interpreter to speed with a full batch, on requests of no one's.

    ``rehearse``: and serve the whole schedule, so that what is made once and kept is there. An
    engine that needs it for itself serves it once more.
    """
    count = min(batch_size, schedule.num_requests)
    first = schedule.num_requests
    params = sampling_params(schedule, num_steps)
    for i in range(count):
        # Back to front: a prefix cache must not know the prompts that are to come.
        prompt = np.ascontiguousarray(schedule.prompt_token_ids(i, engine.vocab_size)[::-1])
        engine.add_request(first + i, prompt, params[i])
    while engine.has_unfinished_requests():
        for delivered in engine.step().delivered:
            take(delivered, streams)
            for index in delivered.finished.tolist():
                engine.output_token_ids(index)

    once = partial(serve_once, engine, engine.step, schedule, streams)
    if rehearse:
        once()
    if isinstance(engine, _Rehearses):
        engine.rehearse(once)

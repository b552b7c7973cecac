"""Replays a schedule against an engine: sends what is due, steps, stamps, reads what is done."""

from collections.abc import Callable
from typing import Any

import numpy as np

from engines.protocol import Int32Array, StepEngine, StepOutput
from harness.clock import Clock
from harness.recorder import Recorder
from workloads.schedule import Schedule


class Client:
    """The one that asks: sends requests, keeps their outputs as long as the workload says.

    ``step`` is the engine's own, or one that looks on.
    """

    def __init__(
        self,
        engine: StepEngine,
        step: Callable[[], StepOutput],
        schedule: Schedule,
        clock: Clock,
    ) -> None:
        self._engine = engine
        self._step = step
        self._clock = clock
        self._schedule = schedule
        self._prompts = [schedule.prompt_token_ids(i) for i in range(schedule.num_requests)]
        self._max_tokens = schedule.output_lens.tolist()
        self._stop_token_ids = schedule.stop_token_ids
        self._arrival_ns = (schedule.arrival_seconds * 1e9).astype(np.int64).tolist()
        self._cap = schedule.max_concurrency or schedule.num_requests
        self._retain = schedule.retain == "finish"
        self._held: list[list[Any] | None] = [None] * schedule.num_requests
        self.tokens: list[Int32Array | None] = [None] * schedule.num_requests
        self.recorder = Recorder(schedule.num_requests, int(schedule.output_lens.sum()))
        self._next = 0
        self._in_flight = 0

    def run(
        self, max_steps: int = 0, slice_steps: int = 0, pause: Callable[[], None] = lambda: None
    ) -> None:
        """Until every request is served, or for ``max_steps`` steps; ``pause`` after each slice."""
        engine, clock, recorder = self._engine, self._clock, self.recorder
        opened = clock.now()
        recorder.requests.scheduled_ns[:] = opened + np.array(self._arrival_ns, np.int64)
        while True:
            self._send(opened)
            if not engine.has_unfinished_requests():
                if self._next == len(self._prompts):
                    return
                clock.wait_until(opened + self._arrival_ns[self._next])
                continue
            output = self._step()
            clock.step_done()
            recorder.step(engine, output, clock.now())
            self._read(output)
            # Held on to, a step's objects would live until the next step has made its own.
            del output
            if max_steps and recorder.num_steps >= max_steps:
                return
            if slice_steps and recorder.num_steps % slice_steps == 0:
                pause()

    def abandon(self) -> None:
        """End what ``max_steps`` has left unserved, a step that is under way included."""
        for index in range(self._next):
            self._engine.abort_request(index)
        while self._engine.has_unfinished_requests():
            self._engine.step()

    def _send(self, opened: int) -> None:
        if self._next == len(self._prompts) or self._in_flight >= self._cap:
            return
        now = self._clock.now()
        due = now - opened
        while (
            self._next < len(self._prompts)
            and self._in_flight < self._cap
            and self._arrival_ns[self._next] <= due
        ):
            index = self._next
            self._engine.add_request(
                index, self._prompts[index], self._max_tokens[index], self._stop_token_ids
            )
            self.recorder.requests.sent_ns[index] = now
            if self._retain:
                self._held[index] = []
            self._next += 1
            self._in_flight += 1

    def _read(self, output: StepOutput) -> None:
        if self._retain:
            held = self._held
            # Not strict: a delivery may make no objects at all.
            for index, item in zip(output.request_index.tolist(), output.outputs, strict=False):
                mine = held[index]
                assert mine is not None
                mine.append(item)
        for index in output.finished.tolist():
            self._held[index] = None
            self.tokens[index] = self._engine.output_token_ids(index)
            self._in_flight -= 1


def warm_up(engine: StepEngine, schedule: Schedule, batch_size: int, num_steps: int = 8) -> None:
    """Bring engine and interpreter to speed with a full batch, on requests of no one's."""
    count = min(batch_size, schedule.num_requests)
    first = schedule.num_requests
    for i in range(count):
        prompt = schedule.prompt_token_ids(i)
        engine.add_request(first + i, prompt, min(num_steps, int(schedule.output_lens[i])))
    while engine.has_unfinished_requests():
        for index in engine.step().finished.tolist():
            engine.output_token_ids(index)

"""Run as a process by `fleet`: sends its part of a schedule and brings home what came back.

Reads a `Task` from standard input, says `READY`, reads the moment from which arrival times count,
plays, leaves its arrays at the task's path, whole or not at all, and answers an `Answer`. The end
of standard input stops it early.
"""

import asyncio
import gc
import resource
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import uvloop

from engines.deadline import tighten_timer, wait_until
from engines.openai.capture import Recording
from engines.openai.client import Client
from engines.openai.request_body import Prompt, request_bytes
from engines.openai.responses import Responses, read_responses
from engines.protocol import Int32Array, Int64Array, SamplingParams
from harness.collector.window import window_events
from harness.load.deal import dealt, in_turns, own_previous_turn, share_of
from harness.load.health import HealthWatch
from harness.load.player import Player, Watch
from harness.load.preflight import WARM_TOKENS, question_of, warm_prompt
from harness.load.progress import Reporter
from harness.load.prompt_file import read_prompts
from harness.load.real_turns import RealTurns
from harness.load.stops import ClientStops, LoopWatch
from harness.load.task import Answer, Task, targets_of
from harness.running.inside import Parent
from harness.trial.arrivals import nanoseconds
from harness.trial.client import sampling_params
from harness.trial.spec import READY, REFUSED
from workloads.files.whole_file import replacing
from workloads.schedule import Schedule

_MOST_CONNECTED = 1024
_MOST_ROOM = 1 << 22
"""Pieces for which there is room beforehand: 80 MB; for more of them it is doubled."""
_SLEEP_UNTIL_NS = 3_000_000
"""Before the first moment that counts the process is awake for so long, its caches warm."""


class Part:
    """A process's requests, as numbers from 0 on; those of the warm-up come behind them."""

    def __init__(self, task: Task, schedule: Schedule) -> None:
        asked = task.asked
        self.requests = dealt(schedule, task.process, asked.client_processes)
        self.count = len(self.requests)
        self.due_ns = nanoseconds(schedule.arrival_seconds)[self.requests]
        self.cap = share_of(schedule.max_concurrency, task.process, asked.client_processes)
        self.previous_turn = own_previous_turn(schedule, self.requests)
        self.targets = targets_of(asked)
        num_warmups = min(asked.num_warmups * len(self.targets), self.count)
        whose = in_turns(schedule, len(self.targets)).tolist()
        question = question_of(asked, task.api_key)
        params = sampling_params(schedule)
        texts = read_prompts(Path(asked.prompts)) if asked.prompts else []
        warm = sampling_params(schedule, WARM_TOKENS)
        priorities = schedule.priorities.tolist() or [0] * schedule.num_requests

        def content(
            i: int, prompt: Int32Array, own: Prompt | None, limits: SamplingParams
        ) -> bytes:
            target = self.targets[whose[i]]
            return request_bytes(target, question, prompt, limits, priorities[i], own)

        def set_prompt(place: int, prompt: Int32Array, own: Prompt | None) -> None:
            i = numbers[place]
            self.contents[place] = content(i, prompt, own, params[i])

        def text_of(i: int) -> Prompt | None:
            return texts[i % len(texts)] if texts else None

        numbers, vocab_size = self.requests.tolist(), asked.vocab_size
        self.set_prompt = set_prompt
        self.whose = [whose[i] for i in [*numbers, *numbers[:num_warmups]]]
        self.contents = [
            content(i, schedule.prompt_token_ids(i, vocab_size), text_of(i), params[i])
            for i in numbers
        ]
        self.contents += [
            content(i, warm_prompt(schedule, i, vocab_size), text_of(i), warm[i])
            for i in numbers[:num_warmups]
        ]
        self.real_turns = (
            RealTurns(
                schedule, self.requests, self.previous_turn, asked.prompt_as, asked.vocab_size
            )
            if asked.real_answers
            else None
        )
        self.asked = schedule.output_lens[np.append(self.requests, self.requests[:num_warmups])]
        pieces = int(self.asked.sum(dtype=np.int64)) + 4 * len(self.asked)
        self.capacity = min(pieces, _MOST_ROOM)


def _within_a_second(due_ns: Int64Array) -> int:
    """The most requests that are due within one second."""
    return int((np.searchsorted(due_ns, due_ns + 10**9) - np.arange(len(due_ns))).max())


class ClientProcess:
    """The inside of one, in its event loop."""

    def __init__(self, task: Task, part: Part, loop: asyncio.AbstractEventLoop) -> None:
        self._task, self._part, self._loop = task, part, loop
        timeout_ns = int(task.asked.request_timeout * 1e9)
        self._client = Client(
            loop, part.targets, part.contents, part.asked, part.capacity, timeout_ns, part.whose
        )
        self._health = HealthWatch(loop, task.asked.client_gc)
        self._loop_watch = LoopWatch(loop) if task.watch_loop else None
        self._reporter = Reporter(task.progress, task.process, self._client, part.asked)

    def warm_up(self) -> None:
        """Connect and ask what is nobody's; a server that is not there shows in the run itself."""
        client, part = self._client, self._part
        at_once = min(part.cap or _within_a_second(part.due_ns), part.count, _MOST_CONNECTED)
        self._loop.run_until_complete(client.connect(at_once))
        extra = range(part.count, len(part.contents))
        if extra:
            zeros = [0] * len(extra)
            shifted = _Shifted(client, part.count)
            player = Player(self._loop, shifted, zeros, 0, part.previous_turn[:0], _Unwatched())
            self._loop.run_until_complete(player.play())
        client.forget()
        self._health.open_window()

    def play(self, start_ns: int) -> tuple[Recording, Answer]:
        """Until all has ended, or the parent says that it shall."""
        client, part, loop = self._client, self._part, self._loop
        due_ns = (start_ns + part.due_ns).tolist()
        seconds = self._task.asked.duration
        until_ns = start_ns + int(seconds * 1e9) if seconds else 0
        watch = _Conversing(self._reporter, client, part) if part.real_turns else self._reporter
        player = Player(loop, client, due_ns, part.cap, part.previous_turn, watch, until_ns)
        loop.add_reader(0, self._stop(player))
        wait_until(start_ns - _SLEEP_UNTIL_NS)
        self._health.begin(start_ns)
        if self._loop_watch:
            self._loop_watch.begin(start_ns)
        loop.run_until_complete(player.play())
        client.close()
        loop.remove_reader(0)
        recording = client.recording(part.count)
        health = self._health.end(
            self._task.process, part.count, len(recording.end), len(recording.data)
        )
        stops = ClientStops(self._task.process)
        if self._loop_watch:
            stops = self._loop_watch.end(self._task.process, window_events())
        return recording, Answer(health=health, messages={}, stops=stops)

    def _stop(self, player: Player) -> Callable[[], None]:
        def stop() -> None:
            self._loop.remove_reader(0)
            player.stop()

        return stop


class _Conversing:
    """Has later turns ask with what came, before they are sent."""

    def __init__(self, watch: Watch, client: Client, part: Part) -> None:
        self._watch, self._client, self._part = watch, client, part
        self.look = watch.look

    def ended(self, request: int) -> None:
        """One has: those that wait for it know what to ask."""
        self._watch.ended(request)
        part = self._part
        assert part.real_turns is not None
        for follower, prompt, own in part.real_turns.after(request, self._client.response):
            part.set_prompt(follower, prompt, own)


class _Unwatched:
    """Looks on at a warm-up."""

    def ended(self, request: int) -> None:
        """Nothing."""

    def look(self) -> None:
        """Nothing."""


class _Shifted:
    """The requests behind the first ``by`` of them, as if there were no others."""

    def __init__(self, client: Client, by: int) -> None:
        self._client, self._by = client, by
        self.on_end: Callable[[int], object] = int
        client.on_end = lambda request: self.on_end(request - by)
        self.abort_late = client.abort_late

    @property
    def num_in_flight(self) -> int:
        """Theirs: no others are under way."""
        return self._client.num_in_flight

    def add_request(self, request_index: int) -> None:
        """Send it."""
        self._client.add_request(request_index + self._by)

    def abort_request(self, request_index: int) -> None:
        """Break it off."""
        self._client.abort_request(request_index + self._by)


def save_arrays(path: Path, recording: Recording, responses: Responses, *, pieces: bool) -> None:
    """Leave both for the parent, whole or not at all. Raises OSError."""
    arrays: dict[str, Any] = {
        name: column
        for name, column in recording._asdict().items()
        if pieces or name not in ("stamp_ns", "request", "end", "data")
    }
    arrays |= {name: each for name, each in responses._asdict().items() if name != "messages"}
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **arrays)


def main() -> int:
    """See the module."""
    tighten_timer()
    with suppress(ValueError, OSError):
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    parent = Parent()
    task = parent.asked(Task)
    schedule = Schedule.load(task.schedule_path)
    loop = uvloop.new_event_loop()
    process = ClientProcess(task, Part(task, schedule), loop)
    try:
        process.warm_up()
    except ValueError as error:
        print(error, file=sys.stderr)
        return REFUSED
    if not (line := parent.hears(READY)):
        return REFUSED
    recording, said = process.play(int(line))
    loop.close()
    gc.disable()  # nothing that is made from here on is garbage before the end
    responses = read_responses(recording)
    path = Path(task.result_path)
    save_arrays(path, recording, responses, pieces=task.keep_pieces)
    said = msgspec.structs.replace(said, messages=_without(task.api_key, responses.messages))
    parent.answer(said)
    return 0


def _without(api_key: str, messages: dict[int, str]) -> dict[int, str]:
    """What servers said, without the key that some of them repeat."""
    if not api_key:
        return messages
    return {request: each.replace(api_key, "[API key]") for request, each in messages.items()}


if __name__ == "__main__":
    sys.exit(main())

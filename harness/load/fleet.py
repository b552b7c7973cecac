"""The client processes of a run, from their start to what they bring home."""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from math import inf
from pathlib import Path
from typing import NamedTuple
from zipfile import BadZipFile

import msgspec
import numpy as np

from engines.protocol import EngineDeadError
from gcbench.code_root import code_root
from harness.load import process as client_process
from harness.load.deal import dealt
from harness.load.observed import Arrays, ClientPart
from harness.load.progress import Progress, Snapshot
from harness.load.stops import ClientStops
from harness.load.task import Answer, Asked, ClientHealth, Task
from harness.machine.clean_environment import clean_environment
from harness.machine.interrupts import held_interrupts
from harness.running.conversation import ProcessEnd, Started, TooSlowError
from harness.running.listener import Listener
from harness.trial.spec import READY, REFUSED
from workloads.schedule import Schedule

_LEAD_NS = 50_000_000
"""From the word to the first moment that counts: as long as it may take to reach all of them."""
_LOOK_SECONDS = 0.25
_PREPARATION_SECONDS = 300.0
_STOP_SECONDS = 60.0


class Home(NamedTuple):
    """What all of them brought. ``deaths``: a sentence for each that ended too early."""

    parts: list[ClientPart]
    clients: list[ClientHealth]
    stops: list[ClientStops]
    deaths: list[str]


class Fleet:
    """Used as `fleet`, which ends what is left of it."""

    def __init__(self, schedule: Schedule, asked: Asked, folder: Path) -> None:
        self._schedule, self._asked = schedule, asked
        self._listener = Listener()
        self._clients: list[Started] = []
        self._progress = Progress(asked.client_processes)
        self._folder = folder

    def launch(self, api_key: str, *, keep_pieces: bool, watch_loop: bool) -> None:
        """Start them; they prepare side by side."""
        path = self._folder / "schedule.npz"
        self._schedule.save(path)
        for number in range(self._asked.client_processes):
            task = Task(
                asked=self._asked,
                process=number,
                schedule_path=str(path),
                result_path=str(self._result(number)),
                progress=self._progress.descriptor,
                api_key=api_key,
                keep_pieces=keep_pieces,
                watch_loop=watch_loop,
            )
            with held_interrupts():  # between its start and its registration nobody would end it
                client = Started(
                    self._listener,
                    [sys.executable, "-P", "-m", client_process.__name__],
                    pass_fds=(task.progress,),
                    env=_environment(),
                )
                self._clients.append(client)
            client.say(msgspec.json.encode(task) + b"\n")

    def wait_until_ready(self) -> None:
        """Return when all are connected and warm. Raises EngineDeadError where one is not."""
        deadline = time.monotonic() + _PREPARATION_SECONDS
        for number, client in enumerate(self._clients):
            try:
                is_ready = client.hears(READY, deadline)
            except TooSlowError:
                raise EngineDeadError(
                    f"client process {number} was not ready within {_PREPARATION_SECONDS:g} s: the "
                    "server does not answer its warm-up requests; try --num-warmups 0 "
                    "--request-timeout 10 to see what comes back"
                ) from None
            if not is_ready:
                raise EngineDeadError(_death(number, client.hear_out(inf)))

    def go(self) -> int:
        """Let all of them begin at the same moment, of `time.perf_counter_ns`."""
        start_ns = time.perf_counter_ns() + _LEAD_NS
        for client in self._clients:
            client.say(b"%d\n" % start_ns)
        return start_ns

    def wait(self, look: Callable[[Snapshot], object]) -> None:
        """Until all have ended; ``look`` is told how far they are, several times a second."""
        while any(not client.is_over for client in self._clients):
            self._listener.listen(_LOOK_SECONDS)
            look(self._progress.read())

    def stop(self) -> None:
        """Let them break off what is under way, and wait until they have said what there is."""
        for client in self._clients:
            client.hang_up()
        deadline = time.monotonic() + _STOP_SECONDS
        while any(not client.is_over for client in self._clients):
            self._listener.listen(_LOOK_SECONDS)
            if time.monotonic() > deadline:
                return

    def bring_home(self) -> Home:
        """What they have left, once they have ended."""
        home = Home([], [], [], [])
        for number, client in enumerate(self._clients):
            requests = dealt(self._schedule, number, self._asked.client_processes)
            ended = client.hear_out(inf) if client.is_over else None
            brought = self._brought(number, ended)
            if brought is None:
                home.deaths.append(_death(number, ended))
                home.parts.append(ClientPart(requests, None, {}))
            else:
                answer, arrays = brought
                home.clients.append(answer.health)
                home.stops.append(answer.stops)
                home.parts.append(ClientPart(requests, arrays, answer.messages))
        return home

    def close(self) -> None:
        """End what lives of them; safe to call twice."""
        for client in self._clients:
            client.end()
        self._clients.clear()
        self._listener.close()
        self._progress.close()

    def _result(self, number: int) -> Path:
        return self._folder / f"client-{number}.npz"

    def _brought(self, number: int, ended: ProcessEnd | None) -> tuple[Answer, Arrays] | None:
        """What it said and its arrays; None where it has not come that far."""
        if ended is None or ended.status:
            return None
        try:
            answer = msgspec.json.decode(ended.said, type=Answer)
            with self._result(number).open("rb") as file, np.load(file) as columns:
                return answer, {name: columns[name] for name in columns.files}
        except (msgspec.MsgspecError, OSError, ValueError, EOFError, BadZipFile):
            return None


@contextmanager
def fleet(schedule: Schedule, asked: Asked, folder: Path) -> Iterator[Fleet]:
    """One that is ended with the block. ``folder`` is its own, and somebody else removes it."""
    made = Fleet(schedule, asked, folder)
    with ExitStack() as stack:
        stack.callback(made.close)
        yield made


def _environment() -> dict[str, str]:
    """A clean one, in which our packages are found, and no key."""
    environment = clean_environment()
    environment.pop("OPENAI_API_KEY", None)
    path = [str(code_root()), *filter(None, [environment.get("PYTHONPATH")])]
    return environment | {"PYTHONPATH": os.pathsep.join(path)}


def _death(number: int, ended: ProcessEnd | None) -> str:
    """How a client process ended, in a sentence; None: it did not."""
    if ended is None:
        return f"client process {number} did not stop"
    said = ended.errors.strip().splitlines()
    if ended.status == REFUSED and said:
        return said[-1]
    if ended.status < 0:
        how = f"was killed by {signal.Signals(-ended.status).name}"
    else:
        how = f"ended with status {ended.status}{f': {said[-1]}' if said else ''}"
    return f"client process {number} {how}"

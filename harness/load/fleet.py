"""The client processes of a run, from their start to what they bring home."""

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from zipfile import BadZipFile

import msgspec
import numpy as np

from engines import tied_process
from engines.protocol import EngineDeadError
from gcbench.code_root import code_root
from harness.load import process as client_process
from harness.load.deal import dealt
from harness.load.observed import Arrays, Part
from harness.load.progress import Progress, Snapshot
from harness.load.stops import ClientStops
from harness.load.task import READY, Answer, Asked, ClientHealth, Task
from harness.machine.clean_environment import clean_environment
from workloads.schedule import Schedule

_LEAD_NS = 50_000_000
"""From the word to the first moment that counts: as long as it may take to reach all of them."""
_LOOK_SECONDS = 0.25
_PREPARATION_SECONDS = 300.0
_STOP_SECONDS = 60.0


class Home(NamedTuple):
    """What all of them brought. ``deaths``: a sentence for each that ended too early."""

    parts: list[Part]
    clients: list[ClientHealth]
    stops: list[ClientStops]
    deaths: list[str]


class Fleet:
    """Used as `fleet`, which ends what is left of it."""

    def __init__(self, schedule: Schedule, asked: Asked, folder: Path) -> None:
        self._schedule, self._asked = schedule, asked
        self._members: list[_Member] = []
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
                result_path=str(self._folder / f"client-{number}.npz"),
                progress=self._progress.descriptor,
                api_key=api_key,
                keep_pieces=keep_pieces,
                watch_loop=watch_loop,
            )
            self._members.append(_Member(task, self._folder))

    def wait_until_ready(self) -> None:
        """Return when all are connected and warm. Raises EngineDeadError where one is not."""
        deadline = time.monotonic() + _PREPARATION_SECONDS
        for member in self._members:
            while not member.is_ready:
                if member.has_ended:
                    raise EngineDeadError(member.death())
                if time.monotonic() > deadline:
                    raise EngineDeadError(
                        f"client process {member.number} was not ready within "
                        f"{_PREPARATION_SECONDS:g} s: the server does not answer its warm-up "
                        "requests; try --num-warmups 0 --request-timeout 10 to see what comes back"
                    )
                member.listen(_LOOK_SECONDS)

    def go(self) -> int:
        """Let all of them begin at the same moment, of `time.perf_counter_ns`."""
        start_ns = time.perf_counter_ns() + _LEAD_NS
        for member in self._members:
            member.say(b"%d\n" % start_ns)
        return start_ns

    def wait(self, look: Callable[[Snapshot], object]) -> None:
        """Until all have ended; ``look`` is told how far they are, several times a second."""
        while any(not member.has_ended for member in self._members):
            for member in self._members:
                member.listen(_LOOK_SECONDS / len(self._members))
            look(self._progress.read())

    def stop(self) -> None:
        """Let them break off what is under way, and wait until they have said what there is."""
        for member in self._members:
            member.hang_up()
        deadline = time.monotonic() + _STOP_SECONDS
        while any(not member.has_ended for member in self._members):
            for member in self._members:
                member.listen(_LOOK_SECONDS / len(self._members))
            if time.monotonic() > deadline:
                return

    def bring_home(self) -> Home:
        """What they have left, once they have ended."""
        home = Home([], [], [], [])
        for member in self._members:
            requests = dealt(self._schedule, member.number, self._asked.client_processes)
            brought = member.answer()
            if brought is None:
                home.deaths.append(member.death())
                home.parts.append(Part(requests, None, {}))
            else:
                answer, arrays = brought
                home.clients.append(answer.health)
                home.stops.append(answer.stops)
                home.parts.append(Part(requests, arrays, answer.messages))
        return home

    def close(self) -> None:
        """End what lives of them; safe to call twice."""
        for member in self._members:
            member.close()
        self._members.clear()
        self._progress.close()


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


class _Member:
    """A client process and its pipes."""

    def __init__(self, task: Task, folder: Path) -> None:
        self.number = task.process
        self.is_ready = self.has_ended = False
        self._result = Path(task.result_path)
        self._errors = folder / f"client-{task.process}.err"
        self._heard = bytearray()
        with self._errors.open("wb") as errors:
            self._process = tied_process.start_tied(
                [sys.executable, "-P", "-m", client_process.__name__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                pass_fds=(task.progress,),
                bufsize=0,
                env=_environment(),
                start_new_session=True,
            )
        self.say(msgspec.json.encode(task) + b"\n")

    def say(self, line: bytes) -> None:
        """Tell it something; that it has ended shows elsewhere."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(line)

    def hang_up(self) -> None:
        """End its standard input, which stops it."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def listen(self, seconds: float) -> None:
        """Take in what it says, for so long at most."""
        if self.has_ended:
            return
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            if not selector.select(seconds):
                return
        heard = os.read(self._process.stdout.fileno(), 1 << 16)
        self._heard += heard
        if not self.is_ready and self._heard.startswith(READY):
            self.is_ready = True
            del self._heard[: len(READY)]
        if not heard:
            self._process.wait()
            self.has_ended = True

    def answer(self) -> tuple[Answer, Arrays] | None:
        """What it said and its arrays; None where it has not come that far."""
        if not self.has_ended or self._process.returncode:
            return None
        try:
            answer = msgspec.json.decode(self._heard, type=Answer)
            with self._result.open("rb") as file, np.load(file) as columns:
                return answer, {name: columns[name] for name in columns.files}
        except (msgspec.MsgspecError, OSError, ValueError, EOFError, BadZipFile):
            return None

    def death(self) -> str:
        """How it ended, in a sentence."""
        status = self._process.poll()
        said = self._errors.read_text(errors="replace").strip().splitlines()
        if status is None:
            how = "did not stop"
        elif status < 0:
            how = f"was killed by {signal.Signals(-status).name}"
        elif status == client_process.REFUSED and said:
            return said[-1]
        else:
            how = f"ended with status {status}{f': {said[-1]}' if said else ''}"
        return f"client process {self.number} {how}"

    def close(self) -> None:
        """Kill what lives of it."""
        if self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()

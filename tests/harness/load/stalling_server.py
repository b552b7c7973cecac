"""A server that stalls by a plan: a front end, a core that steps, and a process aside of both.

``StallingServer(folder, num_streams, plan, step_seconds)`` runs under ``gcbench probe --log``. The
core begins when so many streams are there; with each step every stream gets a token. ``plan``: by
step, what stalls whom before that step's tokens go out: [process, kind, milliseconds]. ``stalled``
says afterwards how long each of the server's took, by this server's own clock.
"""

import asyncio
import ctypes
import gc
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Self

sys.path.insert(0, str(Path(__file__).parents[3]))  # as a process it starts without pytest's path
sys.path.insert(0, str(Path(__file__).parent))

from scripted_server import EVENTS, Answer, Script

from engines import tied_process

BALLAST = 300_000
CLIENT_LEAD_SECONDS = 0.002
_with_gil = ctypes.PyDLL(None)  # which keeps the interpreter's lock, as a long C call does


def hold(milliseconds: float) -> None:
    """A C call of that length; nothing else runs in this process meanwhile."""
    _with_gil.usleep(int(milliseconds * 1000))


class Slow:
    """A cycle whose finaliser takes so long, and with it the collection that frees it."""

    def __init__(self, milliseconds: float) -> None:
        self.milliseconds, self.me = milliseconds, self

    def __del__(self) -> None:
        hold(self.milliseconds)


def stall(kind: str, milliseconds: float) -> None:
    if kind == "collection":
        Slow(milliseconds)
        gc.collect()
    elif kind == "full pass":
        gc.unfreeze()
        gc.collect()
        gc.freeze()
    elif kind == "sleep":
        time.sleep(milliseconds / 1000)
    elif kind == "C call":
        hold(milliseconds)


def planned(script: dict[str, Any], step: int) -> tuple[str, str, float]:
    whom, kind, milliseconds = script["plan"].get(str(step), ("", "", 0.0))
    return whom, kind, milliseconds


def stall_server(script: dict[str, Any], process: str, step: int) -> None:
    """What is planned for the process in this step, if anything is, and note how long it took."""
    whom, kind, milliseconds = planned(script, step)
    if whom != process:
        return
    begin = time.perf_counter_ns()
    stall(kind, milliseconds)
    taken = time.perf_counter_ns() - begin
    with Path(script["folder"], f"stalled-{process}").open("a") as file:
        file.write(f"{step} {taken}\n")


def stalled(folder: Path) -> dict[int, int]:
    """By step, for how many ns one of the server's processes stood still before its tokens."""
    paths = folder.glob("stalled-*")
    lines = [line.split() for path in paths for line in path.read_text().splitlines()]
    return {int(step): int(taken) for step, taken in lines}


CLIENT_SITE = f"""
import sys
if "harness.load.process" in sys.orig_argv:
    import os, signal
    sys.path.append({str(Path(__file__).parent)!r})
    from stalling_server import stall
    lengths = iter([10, 40, 80, 120] * 8)
    signal.signal(signal.SIGUSR1, lambda *_: stall("collection", next(lengths)))
    signal.signal(signal.SIGUSR2, lambda *_: stall("C call", next(lengths)))
    with open(os.environ["CLIENT_PID"], "w") as file:
        file.write(str(os.getpid()))
"""
"""A sitecustomize with which signals stall a client process of gcbench load."""


class StallingServer:
    """``log``: what the probe writes; ``url``; ``pid``: of each process, by name."""

    def __init__(
        self, folder: Path, num_streams: int, plan: dict[int, Any], step_seconds: float
    ) -> None:
        self._script = {
            "folder": str(folder),
            "num_streams": num_streams,
            "plan": plan,
            "step_seconds": step_seconds,
        }
        self.log = folder / "pauses.log"
        self.client_site = folder / "site"
        self.client_site.mkdir()
        (self.client_site / "sitecustomize.py").write_text(CLIENT_SITE)
        self.client_environment = {
            **os.environ,
            "PYTHONPATH": str(self.client_site),
            "CLIENT_PID": str(folder / "client.pid"),
        }

    def __enter__(self) -> Self:
        command = [sys.executable, __file__, "front end", json.dumps(self._script)]
        self._process = tied_process.start_tied(
            [
                sys.executable,
                "-m",
                "harness",
                "probe",
                "--quiet",
                "--log",
                str(self.log),
                "--",
                *command,
            ],
            stdout=subprocess.PIPE,
            start_new_session=True,
            cwd=Path(__file__).parents[3],
        )
        assert self._process.stdout is not None
        said = json.loads(self._process.stdout.readline())
        self.url, self.pid = f"http://127.0.0.1:{said['port']}", said["pid"]
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


class FrontEnd(Script):
    """Streams that get a token with each byte that the core sends."""

    def __init__(self, script: dict[str, Any], core: "subprocess.Popen[bytes]") -> None:
        super().__init__({})
        self.script, self.num_streams, self.core = script, script["num_streams"], core
        self.streams: list[tuple[Answer, list[bytes], asyncio.Future[None]]] = []
        self.step = 0
        assert core.stdout is not None
        self.descriptor = core.stdout.fileno()
        asyncio.get_running_loop().add_reader(self.descriptor, self.take_step)

    async def tokens(self, answer: Answer, most: int | None = None) -> int:
        answer.writer.write(EVENTS.encode())
        total = answer.body["max_tokens"]
        event, last = (answer.event(answer.choice(0, last=last)) for last in (False, True))
        chunk, end = (b"%x\r\n%s\r\n" % (len(each), each) for each in (event, last))
        done = asyncio.get_running_loop().create_future()
        self.streams.append((answer, [end] + [chunk] * (total - 1), done))
        if len(self.streams) == self.num_streams:
            assert self.core.stdin is not None
            self.core.stdin.write(b"go\n")
            self.core.stdin.flush()
        await done
        return int(total)

    def take_step(self) -> None:
        if not os.read(self.descriptor, 1):
            asyncio.get_running_loop().remove_reader(self.descriptor)
            return
        self.step += 1
        stall_server(self.script, "front end", self.step)
        for answer, chunks, done in self.streams:
            if chunks:
                answer.writer.write(chunks.pop())
            elif not done.done():
                done.set_result(None)


async def front_end(script: dict[str, Any]) -> None:
    own = [sys.executable, __file__]
    core = tied_process.start_tied(
        [*own, "core", json.dumps(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    aside = tied_process.start_tied([*own, "aside", "{}"])
    gc.collect()
    gc.freeze()
    gc.disable()
    server = await asyncio.start_server(
        FrontEnd(script, core).connection, "127.0.0.1", 0, limit=1 << 24, backlog=4096
    )
    pids = {"front end": os.getpid(), "core": core.pid, "aside": aside.pid}
    print(json.dumps({"port": server.sockets[0].getsockname()[1], "pid": pids}), flush=True)
    await server.serve_forever()


def core(script: dict[str, Any]) -> None:
    gc.disable()
    ballast = [{"token": [number]} for number in range(BALLAST)]
    gc.freeze()
    sys.stdin.readline()
    client = Path(script["folder"], "client.pid")
    for step in range(1, 1_000_000):
        time.sleep(script["step_seconds"])
        stall_server(script, "core", step)
        whom, kind, _ = planned(script, step)
        if whom == "client":
            number = signal.SIGUSR1 if kind == "collection" else signal.SIGUSR2
            os.kill(int(client.read_text()), number)
            time.sleep(CLIENT_LEAD_SECONDS)
        os.write(1, b".")
    del ballast


def aside() -> None:
    """Collects for nobody."""
    lengths = random.Random(5)
    while True:
        time.sleep(lengths.uniform(0.02, 0.2))
        stall("collection", lengths.uniform(5, 150))


if __name__ == "__main__":
    own_script = json.loads(sys.argv[2])
    if sys.argv[1] == "front end":
        asyncio.run(front_end(own_script))
    elif sys.argv[1] == "core":
        core(own_script)
    else:
        aside()

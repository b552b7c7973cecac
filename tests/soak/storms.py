"""Storms of connections, by a seed, on `gcbench serve` and `gcbench dashboard`.

    python tests/soak/storms.py SECONDS SEED

Status 1 where a server does not answer in a storm, grows, or does not end as it should.
"""

import json
import random
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import psutil
from flat import Sampler, grown, seconds_between_samples

ROOT = Path(__file__).parents[2]
ANSWERS_WITHIN_SECONDS, READY_WITHIN_SECONDS = 30.0, 120.0
HOLDS_SECONDS = 0.2
RESET = struct.pack("ii", 1, 0)


class Server(NamedTuple):
    """One that runs. ``asks``: what is answered with 200."""

    name: str
    process: "subprocess.Popen[bytes]"
    port: int
    asks: list[bytes]


def request(method: str, path: str, body: bytes = b"") -> bytes:
    """With a head that any of the two takes."""
    about = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n" if body else ""
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{about}Connection: close\r\n\r\n"
    return head.encode() + body


def completion(stream: bool, tokens: int) -> bytes:
    """Of a prompt of token ids."""
    asked = {"prompt": [1, 2, 3], "max_tokens": tokens, "stream": stream, "ignore_eos": True}
    return request("POST", "/v1/completions", json.dumps(asked).encode())


@contextmanager
def served(name: str, command: list[str], asks: list[bytes]) -> Iterator[Server]:
    """Ready, at a port that is free."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = [sys.executable, "-m", "harness", *command, "--port", str(port)]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.DEVNULL) as process:
        try:
            server = Server(name, process, port, asks)
            until = time.monotonic() + READY_WITHIN_SECONDS
            while refusal(server, asks[0]):
                if process.poll() is not None or time.monotonic() > until:
                    raise RuntimeError(f"{name} did not begin")
                time.sleep(0.1)
            yield server
        finally:
            process.kill()


def refusal(server: Server, asked: bytes) -> str:
    """What came instead of an answer with 200, to the end; "" where that came."""
    try:
        with connected(server) as client:
            client.sendall(asked)
            answer = b"".join(iter(lambda: client.recv(1 << 16), b""))
    except OSError as error:
        return repr(error)
    is_well = answer.split(b" ", 2)[1:2] == [b"200"] and b'data: {"error"' not in answer
    return "" if is_well else repr(answer[-200:])


def connected(server: Server) -> socket.socket:
    """A connection of a client's."""
    return socket.create_connection(("127.0.0.1", server.port), ANSWERS_WITHIN_SECONDS)


def storm(server: Server, draw: random.Random) -> None:
    """Connections that say nothing, half of it, all of it and do not listen, or reset."""
    with ExitStack() as held:
        for _ in range(draw.randrange(1, 120)):
            with suppress(OSError):
                client = held.enter_context(connected(server))
                asked = draw.choice(server.asks)
                client.send(asked[: draw.choice((0, 1, len(asked) // 2, len(asked)))])
                if draw.random() < 0.3:
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                if draw.random() < 0.3:
                    client.close()
        time.sleep(HOLDS_SECONDS)


def look_at(server: Server, sampler: Sampler) -> None:
    """Sample it and all that it has started."""
    memory = descriptors = cpu = 0.0
    root = psutil.Process(server.process.pid)
    for each in [root, *root.children(recursive=True)]:
        memory += each.memory_info().rss
        descriptors += each.num_fds()
        cpu += sum(each.cpu_times()[:2])
    sampler.take(memory, descriptors, cpu)


def soak(server: Server, draw: random.Random, seconds: float) -> str:
    """Why it did not hold, or ""."""
    sampler = Sampler()
    storms, until, sample_at = 0, time.monotonic() + seconds, 0.0
    while (now := time.monotonic()) < until:
        if now >= sample_at:  # between storms, when it holds nobody's
            time.sleep(HOLDS_SECONDS)
            look_at(server, sampler)
            sample_at = now + seconds_between_samples(seconds)
        storm(server, draw)
        storms += 1
        if why := refusal(server, asked := draw.choice(server.asks)):
            return f"after storm {storms} {asked!r} was answered by {why}"
    server.process.send_signal(signal.SIGTERM)
    status = server.process.wait(ANSWERS_WITHIN_SECONDS)
    print(f"{storms:12,}  storms on {server.name}", flush=True)
    grows = grown(sampler.samples)
    if status:
        return f"it ended with {status}"
    return f"it grows: {grows}" if grows else ""


def main() -> int:
    """Both, one after the other, each for half of the time."""
    seconds, draw = float(sys.argv[1]) / 2, random.Random(int(sys.argv[2]))
    health, models = request("GET", "/health"), request("GET", "/v1/models")
    engine = ["serve", "--device", "null", "--batch-size", "64"]
    asks = [health, models, completion(False, 8), completion(True, 200)]
    failed = []
    site = ["dashboard", str(ROOT / "results" / "published"), "--timelines", "0"]
    for command, asked in ((engine, asks), (site, [request("GET", "/index.html")])):
        with served(f"gcbench {command[0]}", command, asked) as server:
            if why := soak(server, draw, seconds):
                failed.append(f"{server.name}: {why}.")
    print("\n".join(failed) or "Both servers answered after every storm.")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())

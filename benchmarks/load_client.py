"""How much of a core does a client take per separately arriving chunk, and does it lose any?

A server that computes nothing writes small chunks of server-sent events, each in a write of its
own, from another process. Clients beside each other: gcbench's connection (stamp, bytes, end of
message), a bare asyncio protocol on httptools, and aiohttp's `iter_any`, all on uvloop. Then
1,024 streams at 25 tokens a second each through gcbench's client.

    python -m benchmarks.load_client [--chunks N] [--seconds S] [--repeats R]

CPU is the client process's own, by `time.process_time`. The last line is one JSON document.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any, cast

import httptools
import numpy as np
import uvloop

from engines import tied_process
from engines.openai.client import Client
from engines.openai.outcome import Outcome
from engines.openai.target import Target
from harness.load.health import HealthWatch
from harness.load.player import Player

STREAMS = 64
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
EVENT = (
    b'data: {"id":"cmpl-0","object":"text_completion","model":"m","choices":[{"index":0,'
    b'"text":" token","logprobs":null,"finish_reason":null,"stop_reason":null}]}\n\n'
)
CHUNK = b"%x\r\n%s\r\n" % (len(EVENT), EVENT)
END = b"0\r\n\r\n"
POLICY = "freeze+disabled"


class Server(asyncio.Protocol):
    """Answers each request with ``count`` chunks, one every ``gap`` seconds."""

    def __init__(self, count: int, gap: float) -> None:
        self._count, self._gap = count, gap

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ready."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """A request is small: it comes at once."""
        self._transport.write(HEAD)
        self._loop = asyncio.get_running_loop()
        self._left, self._due = self._count, self._loop.time()
        self._next()

    def _next(self) -> None:
        if self._transport.is_closing():
            return
        self._left -= 1
        self._transport.write(CHUNK if self._left else CHUNK + END)
        if self._left:
            # Absolute: what one comes late does not make the next one late. Even without a gap
            # each has a turn of the loop, and so a write, of its own.
            self._due += self._gap
            if self._gap:
                self._loop.call_at(self._due, self._next)
            else:
                self._loop.call_soon(self._next)


def serve(count: int, gap: float) -> None:
    """Run a server until it is killed; says its port."""

    async def run() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Server(count, gap), "127.0.0.1", 0, backlog=4096)
        print(server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()

    uvloop.run(run())


class Served:
    """Such a server as a process of its own."""

    def __init__(self, count: int, gap: float) -> None:
        self._process = tied_process.start_tied(
            [sys.executable, "-m", "benchmarks.load_client", "--serve", str(count), str(gap)],
            stdout=subprocess.PIPE,
        )

    def __enter__(self) -> int:
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


class Unwatched:
    """Looks on at a player."""

    def ended(self, request: int) -> None:
        """Nothing."""

    def look(self) -> None:
        """Nothing."""


REQUEST = b"POST /v1/completions HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}"


NumBytes = Callable[[], int]
"""Adds up the bytes of answers, when the time is no longer taken."""


async def with_gcbench(port: int, count: int) -> NumBytes:
    """What is added up, the answers being there."""
    loop = asyncio.get_running_loop()
    asked = np.full(STREAMS, count, np.int32)
    client = Client(
        loop, [Target("127.0.0.1", port)], [REQUEST] * STREAMS, asked, STREAMS * (count + 4)
    )
    await client.connect(STREAMS)
    player = Player(loop, client, [0] * STREAMS, 0, np.zeros(0, np.int32), Unwatched())
    await player.play()
    client.close()
    return lambda: len(client.recording(STREAMS).data)


class Bare(asyncio.Protocol):
    """The least that a client on httptools can do: count bodies and see the end."""

    def __init__(self, over: "asyncio.Future[None]") -> None:
        self._over, self.num_bytes = over, 0
        self._parser = httptools.HttpResponseParser(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask."""
        cast(asyncio.Transport, transport).write(REQUEST)

    def data_received(self, data: bytes) -> None:
        """Parse."""
        self.num_bytes += len(data)
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        """A chunk."""

    def on_message_complete(self) -> None:
        """The end."""
        self._over.set_result(None)


async def with_httptools(port: int, count: int) -> NumBytes:
    """The same."""
    loop = asyncio.get_running_loop()

    async def one() -> int:
        over: asyncio.Future[None] = loop.create_future()
        transport, bare = await loop.create_connection(lambda: Bare(over), "127.0.0.1", port)
        await over
        transport.close()
        return bare.num_bytes

    found = await asyncio.gather(*(one() for _ in range(STREAMS)))
    return lambda: sum(found)


async def with_aiohttp(port: int, count: int) -> NumBytes:
    """The same, without what frames the chunks."""
    import aiohttp

    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, read_bufsize=1 << 20) as session:

        async def one() -> int:
            url = f"http://127.0.0.1:{port}/v1/completions"
            async with session.post(url, data=b"{}") as answer:
                return sum([len(piece) async for piece in answer.content.iter_any()])

        found = await asyncio.gather(*(one() for _ in range(STREAMS)))
    return lambda: sum(found)


CLIENTS: dict[str, Callable[[int, int], Awaitable[NumBytes]]] = {
    "gcbench": with_gcbench,
    "httptools": with_httptools,
    "aiohttp iter_any": with_aiohttp,
}


def microseconds(name: str, count: int) -> dict[str, float]:
    """CPU per chunk of one client against a server of its own, and chunks a second."""
    import gc

    with Served(count, 0.0) as port:

        async def timed() -> tuple[float, float, int]:
            gc.collect()
            gc.disable()
            began, cpu = time.perf_counter(), time.process_time()
            num_bytes = await CLIENTS[name](port, count)
            took = time.perf_counter() - began, time.process_time() - cpu
            gc.enable()
            return (*took, num_bytes())

        seconds, cpu, num_bytes = uvloop.run(timed())
    chunks = STREAMS * count
    assert num_bytes >= chunks * len(EVENT), "a chunk was lost"
    return {"cpu_us_per_chunk": 1e6 * cpu / chunks, "chunks_per_second": chunks / seconds}


def many_streams(seconds: float, streams: int = 1024, rate: float = 25.0) -> dict[str, Any]:
    """1,024 streams at once, each at its own pace: what was lost, and how late the loop was."""
    count = round(seconds * rate)
    with Served(count, 1 / rate) as port:
        loop = uvloop.new_event_loop()
        asked = np.full(streams, count, np.int32)
        client = Client(
            loop, [Target("127.0.0.1", port)], [REQUEST] * streams, asked, streams * (count + 4)
        )
        loop.run_until_complete(client.connect(streams))
        watch = HealthWatch(loop, POLICY)
        watch.open_window()
        start_ns = time.perf_counter_ns() + 5_000_000
        # Spread over one gap, so that tokens do not all come at one moment.
        due_ns = (start_ns + np.arange(streams) / streams / rate * 1e9).astype(np.int64).tolist()
        player = Player(loop, client, due_ns, 0, np.zeros(0, np.int32), Unwatched())
        watch.begin(start_ns)
        loop.run_until_complete(player.play())
        recording = client.recording(streams)
        health = watch.end(0, streams, len(recording.end), len(recording.data))
        client.close()
        loop.close()
    wanted = streams * (len(HEAD) + count * len(CHUNK) + len(END))
    return {
        "streams": streams,
        "completed": int((recording.ended == Outcome.COMPLETED).sum()),
        "lost_chunks": (wanted - len(recording.data)) / len(CHUNK),
        "cpu_share": health.cpu_share,
        "waited_share": health.waited_share,
        "stolen_share": health.stolen_share,
        "lag_p99_ms": 1e3 * health.lag_p99,
        "lag_p999_ms": 1e3 * health.lag_p999,
        "lag_max_ms": 1e3 * health.lag_max,
    }


def main() -> None:
    """Print a table and the document."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chunks", type=int, default=2000, help="of each of 64 streams")
    parser.add_argument("--seconds", type=float, default=20.0, help="of the 1,024 streams")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve:
        serve(int(asked.serve[0]), float(asked.serve[1]))
        return
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in CLIENTS}
    for _ in range(asked.repeats):
        for name, found in rounds.items():
            found.append(microseconds(name, asked.chunks))
    print(f"{'client':20}{'µs of CPU a chunk':>20}{'chunks/s':>12}   (medians of {asked.repeats})")
    medians = {
        name: {key: float(np.median([each[key] for each in found])) for key in found[0]}
        for name, found in rounds.items()
    }
    for name, each in medians.items():
        print(f"{name:20}{each['cpu_us_per_chunk']:20.2f}{each['chunks_per_second']:12,.0f}")
    streams = [many_streams(asked.seconds) for _ in range(asked.repeats)]
    for each in streams:
        print(
            f"1,024 streams: {each['completed']:,} completed, {each['lost_chunks']:g} chunks "
            f"lost, lag p99.9 {each['lag_p999_ms']:.2f} ms, CPU {each['cpu_share']:.0%}, "
            f"stolen {each['stolen_share']:.1%}"
        )
    print(json.dumps({"clients": medians, "streams": streams}))


if __name__ == "__main__":
    main()

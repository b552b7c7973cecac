"""Starts ``gcbench serve`` as users do, and asks it things."""

import asyncio
import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import aiohttp
from processes import HANG_SECONDS, HEARS_CTRL_C
from prometheus_client.parser import text_string_to_metric_families

ROOT = Path(__file__).parents[3]
NULL = ("--device", "null", "--batch-size", "8", "--axis", "detokenizer=byte_table")
JSON = {"Content-Type": "application/json"}


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> dict[str, Any]:
        (error,) = [self.json()["error"]]
        assert error.keys() == {"message", "type", "param", "code"}
        return error


class Served(NamedTuple):
    """A server that is ready."""

    process: "subprocess.Popen[str]"
    url: str

    @property
    def address(self) -> tuple[str, int]:
        parts = urlsplit(self.url)
        return parts.hostname or "", parts.port or 0

    def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] = JSON
    ) -> Answer:
        connection = http.client.HTTPConnection(*self.address, timeout=HANG_SECONDS)
        data = body if isinstance(body, bytes | None) else json.dumps(body)
        try:
            connection.request(method, path, data, headers)
            response = connection.getresponse()
            return Answer(response.status, dict(response.headers), response.read())
        finally:
            connection.close()

    def complete(self, **body: Any) -> Answer:
        return self.ask("POST", "/v1/completions", {"prompt": [1, 2, 3]} | body)

    def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric's samples with these labels."""
        text = self.ask("GET", "/metrics").body.decode()
        found = [
            sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        ]
        assert found, f"no {name} with {labels}"
        return sum(found)

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str, str]:
        """Its status and what it had said."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        out, err = self.process.communicate(timeout=HANG_SECONDS)
        return self.process.returncode, out, err


@contextmanager
def serving(*flags: str, **environment: str) -> Iterator[Served]:
    """A server on a free port; killed where a test has not ended it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "gcbench", "serve", "--port", "0", *flags],
        cwd=ROOT,
        env=os.environ | environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **HEARS_CTRL_C,
    )
    with process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise AssertionError(process.communicate()[1])
            yield Served(process, line.split(" at ")[1].split("/v1")[0])
        finally:
            process.kill()


def events(data: bytes) -> list[Any]:
    """The JSON of a stream's events; it has ended as it should."""
    lines = data.decode().split("\n\n")
    assert lines[-2:] == ["data: [DONE]", ""]
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-2]]


async def stream(
    session: aiohttp.ClientSession,
    path: str,
    body: dict[str, Any],
    headers: dict[str, str] | None = None,
) -> list[Any]:
    async with session.post(path, json=body | {"stream": True}, headers=headers) as response:
        assert response.status == 200, await response.text()
        return events(await response.read())


def session(served: Served) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        served.url,
        connector=aiohttp.TCPConnector(limit=0),
        timeout=aiohttp.ClientTimeout(HANG_SECONDS),
    )


async def until_idle(served: Served) -> None:
    """Return when neither the front end nor the core has a request."""
    async with asyncio.timeout(HANG_SECONDS):
        while await asyncio.to_thread(num_in_flight, served):
            pass


def num_in_flight(served: Served) -> float:
    return served.metric("vllm:num_requests_running") + served.metric("vllm:num_requests_waiting")


async def raw(served: Served, request: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection on which these bytes have been sent."""
    reader, writer = await asyncio.open_connection(*served.address)
    writer.write(request)
    await writer.drain()
    return reader, writer


def post_bytes(path: str, body: dict[str, Any]) -> bytes:
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data


async def lines(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while line := await reader.readline():
        yield line

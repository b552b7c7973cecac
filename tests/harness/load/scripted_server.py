"""A server of the OpenAI API that computes nothing and does what a script says, faults included.

A process of its own: ``with ScriptedServer(gaps=[0.25], faults=["none", "reset"]) as server``. The
n-th request meets the fault n modulo their number; each of its tokens comes after the next gap. It
stamps what it sends, by the clock that the client stamps with.
"""

import asyncio
import json
import ssl
import subprocess
import sys
from itertools import count
from pathlib import Path
from time import perf_counter_ns
from typing import Any, Self
from urllib.request import urlopen

sys.path.insert(0, str(Path(__file__).parents[3]))  # as a process it starts without pytest's path

from engines import tied_process

EVENTS = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
ENDLESS_GAP = 0.05


class ScriptedServer:
    """``url``; ``stamps()``: for each request that was answered, nanoseconds of its tokens.

    ``certificate``: a PEM file with its key, for https. ``delay``: seconds until it listens.
    ``metrics``: what ``/metrics`` says, formatted with the number of requests so far as ``{n}``.
    """

    def __init__(self, **script: Any) -> None:
        self._script = script

    def __enter__(self) -> Self:
        self._process = tied_process.start_tied(
            [sys.executable, __file__, json.dumps(self._script)], stdout=subprocess.PIPE
        )
        assert self._process.stdout is not None
        self.port = self._script.get("port") or int(self._process.stdout.readline())
        scheme = "https" if self._script.get("certificate") else "http"
        self.url = f"{scheme}://127.0.0.1:{self.port}"
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_for_requests(self, count: int) -> None:
        """Return once so many have come."""
        with urlopen(f"{self.url}/wait/{count}"):
            pass

    def let_go(self) -> None:
        """Let the answers that are ``held`` go on."""
        with urlopen(f"{self.url}/go"):
            pass

    def seen(self) -> dict[str, Any]:
        """``stamps``, a list for each request in the order of arrival; ``bodies``; ``keys``."""
        with urlopen(f"{self.url}/seen") as answer:
            return json.load(answer)


class Answer:
    """One request's: writes events as chunks and stamps them."""

    def __init__(self, number: int, body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        self.number, self.body, self.writer = number, body, writer
        self.is_chat = "messages" in body
        self.object = "chat.completion.chunk" if self.is_chat else "text_completion"
        self.stamps: list[int] = []
        self.line_end = "\n"
        self.reason: str | None = "length"

    def chunk(self, text: bytes) -> None:
        self.writer.write(b"%x\r\n%s\r\n" % (len(text), text))

    def event(self, value: Any) -> bytes:
        text = value if isinstance(value, str) else json.dumps(value)
        return f"data: {text}{self.line_end}{self.line_end}".encode()

    def choice(self, token: int, *, last: bool) -> dict[str, Any]:
        said = f" t{token}ü"
        own = {"delta": {"content": said}} if self.is_chat else {"text": said}
        if self.body.get("return_token_ids"):
            own["token_ids"] = [100 * self.number + token]
        choice = own | {"index": 0, "finish_reason": self.reason if last else None}
        return {"object": self.object, "choices": [choice]}

    def usage(self, tokens: int) -> bytes:
        usage = {"prompt_tokens": 3, "completion_tokens": tokens}
        return self.event({"object": self.object, "choices": [], "usage": usage})

    async def token(self, token: int, total: int) -> None:
        self.stamps.append(perf_counter_ns())
        self.chunk(self.event(self.choice(token, last=token == total - 1)))
        await self.writer.drain()

    def end(self, tokens: int) -> None:
        self.chunk(self.usage(tokens) + self.event("[DONE]"))
        self.writer.write(b"0\r\n\r\n")


def status(code: int, body: bytes = b"no", more: str = "") -> bytes:
    return f"HTTP/1.1 {code} Words\r\nContent-Length: {len(body)}\r\n{more}\r\n".encode() + body


class Script:
    """What requests meet. A fault is a method of its name: whether the connection goes on."""

    def __init__(self, script: dict[str, Any]) -> None:
        self.gaps: list[float] = script.get("gaps", [0.0])
        self.faults: list[str] = script.get("faults", ["none"])
        self.metrics: str = script.get("metrics", "")
        self.numbers = count()
        self.stamps: dict[int, list[int]] = {}
        self.waiting: list[tuple[int, asyncio.Future[None]]] = []
        self.bodies: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.has_been_let_go = asyncio.Event()

    async def completion(self, body: dict[str, Any], writer: asyncio.StreamWriter) -> bool:
        number = next(self.numbers)
        answer = Answer(number, body, writer)
        self.stamps[number] = answer.stamps
        self.bodies.append(body)
        for wanted, future in self.waiting:
            if len(self.bodies) >= wanted and not future.done():
                future.set_result(None)
        fault = self.faults[number % len(self.faults)]
        goes_on: bool = await getattr(self, fault)(answer)
        return goes_on

    async def tokens(self, answer: Answer, most: int | None = None) -> int:
        asked = ("max_tokens", "max_completion_tokens")
        total = next(answer.body[name] for name in asked if name in answer.body)
        answer.writer.write(EVENTS.encode())
        for token in range(total if most is None else most):
            await asyncio.sleep(self.gaps[token % len(self.gaps)])
            await answer.token(token, total)
        return int(total)

    async def none(self, answer: Answer) -> bool:
        answer.end(await self.tokens(answer))
        return True

    async def uncounted(self, answer: Answer) -> bool:
        """No usage, though it was asked for."""
        await self.tokens(answer)
        answer.chunk(answer.event("[DONE]"))
        answer.writer.write(b"0\r\n\r\n")
        return True

    async def held(self, answer: Answer) -> bool:
        """One that begins, and ends once it is let go."""
        answer.writer.write(EVENTS.encode())
        asked = ("max_tokens", "max_completion_tokens")
        total = next(answer.body[name] for name in asked if name in answer.body)
        for token in range(total):
            await answer.token(token, total)
            await self.has_been_let_go.wait()
        answer.end(total)
        return True

    async def crlf(self, answer: Answer) -> bool:
        answer.line_end = "\r\n"
        return await self.none(answer)

    async def split(self, answer: Answer) -> bool:
        """Each byte a chunk of its own, and a comment between the events."""
        answer.writer.write(EVENTS.encode())
        asked = ("max_tokens", "max_completion_tokens")
        total = next(answer.body[name] for name in asked if name in answer.body)
        for token in range(total):
            choice = answer.event(answer.choice(token, last=token == total - 1))
            for place, byte in enumerate(b": ping\n\n" + choice):
                answer.chunk(bytes([byte]))
                if place % 16 == 0:
                    await answer.writer.drain()
                    await asyncio.sleep(0)
        answer.end(total)
        return True

    async def together(self, answer: Answer) -> bool:
        """All events in one write."""
        asked = ("max_tokens", "max_completion_tokens")
        total = next(answer.body[name] for name in asked if name in answer.body)
        answer.writer.write(EVENTS.encode())
        events = [answer.event(answer.choice(n, last=n == total - 1)) for n in range(total)]
        answer.chunk(b"".join(events))
        answer.end(total)
        return True

    async def until_close(self, answer: Answer) -> bool:
        """No length at all: the end of the connection is the end of the answer."""
        answer.writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        asked = ("max_tokens", "max_completion_tokens")
        total = next(answer.body[name] for name in asked if name in answer.body)
        for token in range(total):
            answer.writer.write(answer.event(answer.choice(token, last=token == total - 1)))
        answer.writer.write(answer.usage(total) + answer.event("[DONE]"))
        return False

    async def rate_limited(self, answer: Answer) -> bool:
        answer.writer.write(status(429, b"slow down", "Retry-After: 1\r\n"))
        return True

    async def not_found(self, answer: Answer) -> bool:
        answer.writer.write(status(404, b"no such model"))
        return True

    async def echoes_key(self, answer: Answer) -> bool:
        answer.writer.write(status(401, f"wrong key {self.keys[-1]}".encode()))
        return True

    async def redirect(self, answer: Answer) -> bool:
        answer.writer.write(status(302, b"", "Location: /elsewhere\r\n"))
        return True

    async def server_error(self, answer: Answer) -> bool:
        answer.writer.write(status(500, b"boom", "Connection: close\r\n"))
        return False

    async def error_event(self, answer: Answer) -> bool:
        await self.tokens(answer, 1)
        answer.chunk(answer.event({"error": {"message": "out of memory", "code": 500}}))
        answer.end(1)
        return True

    async def nameless_error(self, answer: Answer) -> bool:
        """Nothing but the event's type says that it is one; usage goes on as if all were well."""
        total = await self.tokens(answer)
        answer.chunk(b'event: error\ndata: {"message": "out of memory"}\n\n')
        answer.end(total)
        return True

    async def error_object(self, answer: Answer) -> bool:
        total = await self.tokens(answer)
        answer.chunk(answer.event({"object": "error", "message": "out of memory", "code": 500}))
        answer.end(total)
        return True

    async def aborted(self, answer: Answer) -> bool:
        return await self.ends(answer, "abort")

    async def filtered(self, answer: Answer) -> bool:
        return await self.ends(answer, "content_filter")

    async def failed(self, answer: Answer) -> bool:
        return await self.ends(answer, "error")

    async def no_reason(self, answer: Answer) -> bool:
        """All tokens, usage and [DONE], and no word on why it has ended."""
        return await self.ends(answer, None, answer.body["max_tokens"])

    async def broken_off(self, answer: Answer) -> bool:
        """After a few tokens, as tidily as a whole one."""
        return await self.ends(answer, None)

    async def ends(self, answer: Answer, reason: str | None, tokens: int = 2) -> bool:
        answer.reason, answer.body = reason, answer.body | {"max_tokens": tokens}
        return await self.none(answer)

    async def reset(self, answer: Answer) -> bool:
        answer.writer.transport.abort()
        return False

    async def closed(self, answer: Answer) -> bool:
        await self.tokens(answer, 2)
        return False

    async def no_end(self, answer: Answer) -> bool:
        """A whole HTTP message whose stream just stops."""
        await self.tokens(answer, 2)
        answer.writer.write(b"0\r\n\r\n")
        return True

    async def malformed(self, answer: Answer) -> bool:
        await self.tokens(answer, 1)
        answer.chunk(b"data: {not json\n\n")
        answer.end(1)
        return True

    async def non_utf8(self, answer: Answer) -> bool:
        await self.tokens(answer, 1)
        answer.chunk(b'data: {"choices": [{"text": "\xff\xfe"}]}\n\n')
        answer.end(2)
        return True

    async def not_http(self, answer: Answer) -> bool:
        answer.writer.write(b"SSH-2.0-OpenSSH_9.6\r\n")
        return False

    async def wrong_count(self, answer: Answer) -> bool:
        answer.end(await self.tokens(answer) + 3)
        return True

    async def silent(self, answer: Answer) -> bool:
        """An answer that never begins."""
        await asyncio.sleep(3600)
        return False

    async def endless(self, answer: Answer) -> bool:
        """One that never ends, nor comes to its last token."""
        answer.writer.write(EVENTS.encode())
        while True:
            answer.chunk(b": still here\n\n")
            await answer.writer.drain()
            await asyncio.sleep(ENDLESS_GAP)

    async def connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self.request(reader, writer):
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        line, *fields = head.split("\r\n")
        headers = {
            name.lower(): value.strip()
            for name, _, value in (field.partition(":") for field in fields)
        }
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        self.keys.append(headers.get("authorization", "").removeprefix("Bearer "))
        path = line.split()[1].partition("?")[0]
        if path.startswith("/wait/"):
            future = asyncio.get_running_loop().create_future()
            if (wanted := int(path.removeprefix("/wait/"))) > len(self.bodies):
                self.waiting.append((wanted, future))
                await future
            path = "/health"
        if path == "/go":
            self.has_been_let_go.set()
            path = "/health"
        if path.endswith("/embeddings"):
            self.bodies.append(json.loads(body))
            usage = {"prompt_tokens": len(self.bodies[-1]["input"]), "total_tokens": 0}
            data = [{"object": "embedding", "index": 0, "embedding": [0.5] * 64}]
            said = json.dumps({"object": "list", "data": data, "usage": usage})
            writer.write(status(200, said.encode()))
            return True
        if path.endswith("/completions"):
            return await self.completion(json.loads(body), writer)
        known = {
            "/health": b"",
            "/v1/models": b'{"data": [{"id": "scripted"}]}',
            "/metrics": self.metrics.replace("{n}", str(len(self.bodies))).encode(),
            "/seen": json.dumps(
                {
                    "stamps": [self.stamps[n] for n in sorted(self.stamps)],
                    "bodies": self.bodies,
                    "keys": self.keys,
                }
            ).encode(),
        }
        writer.write(status(200, known[path]) if path in known else status(404))
        return True


async def serve(script: dict[str, Any]) -> None:
    await asyncio.sleep(script.get("delay", 0.0))
    context = None
    if certificate := script.get("certificate"):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
    handler = Script(script).connection
    server = await asyncio.start_server(
        handler, "127.0.0.1", script.get("port", 0), ssl=context, limit=1 << 24, backlog=4096
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(json.loads(sys.argv[1])))

"""Clients that leave, read slowly, are too many, or take too long; and one that others wrote."""

import asyncio
import gc
import socket
from typing import Any

import pytest
from served import (
    NULL,
    Served,
    events,
    num_in_flight,
    post_bytes,
    raw,
    serving,
    session,
    stream,
    until_idle,
)

LONGEST = 200_000
MODEL = "opt-125m" * 500
"""Its name is in every chunk: few of them are more than the kernel's buffers hold."""
ENDLESS: dict[str, Any] = {"prompt": [1, 2, 3], "max_tokens": LONGEST - 3, "ignore_eos": True}


@pytest.fixture(scope="module")
def served():
    with serving(
        *NULL, "--axis", f"max-model-len={LONGEST}", "--served-model-name", MODEL
    ) as running:
        yield running


async def begin(served: Served, body: dict[str, Any]) -> tuple[asyncio.StreamReader, Any]:
    """A stream that has brought its first event."""
    reader, writer = await raw(served, post_bytes("/v1/completions", body | {"stream": True}))
    await reader.readuntil(b"data: ")
    return reader, writer


@pytest.mark.slow
def test_a_client_that_leaves_before_the_core_has_answered_harms_nobody(served):
    """Of the collector's counts the core is asked between two steps."""

    async def leave() -> None:
        _, writer = await begin(served, ENDLESS)
        for _ in range(100):
            _, asking = await raw(served, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
            asking.transport.abort()
        writer.close()
        await until_idle(served)

    asyncio.run(leave())
    assert served.ask("GET", "/metrics").status == 200


@pytest.mark.slow
@pytest.mark.parametrize("count", [40, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("is_streaming", [True, False])
def test_clients_that_vanish_leave_no_request(served, count, is_streaming):
    """Running and waiting ones, politely and not."""
    before = (
        served.metric("vllm:request_success_total", finished_reason="abort")
        if (b'"abort"' in served.ask("GET", "/metrics").body)
        else 0
    )

    async def vanish() -> None:
        body = ENDLESS | {"stream": is_streaming}
        data = post_bytes("/v1/completions", body)
        clients = [await raw(served, data) for _ in range(count)]
        while await asyncio.to_thread(num_in_flight, served) < count:
            pass
        for nth, (_, writer) in enumerate(clients):
            if nth % 2:
                writer.transport.abort()
            else:
                writer.close()
        await until_idle(served)

    asyncio.run(vanish())
    assert served.metric("vllm:request_success_total", finished_reason="abort") == before + count
    whole = served.complete(max_tokens=5, ignore_eos=True).json()
    assert whole["usage"]["completion_tokens"] == 5


@pytest.mark.slow
def test_a_slow_reader_holds_nobody_up_and_loses_nothing(served):
    """What it has not read yet becomes fewer, larger chunks."""
    slow_body = ENDLESS | {"max_tokens": 3_000, "return_token_ids": True, "stream": True}

    async def read() -> None:
        slow = socket.create_connection(served.address)
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        headers = b"\r\nX-Request-Index: 5\r\n"
        slow.sendall(post_bytes("/v1/completions", slow_body).replace(b"\r\n", headers, 1))
        async with session(served) as http:
            for _ in range(3):
                chunks = await stream(http, "/v1/completions", ENDLESS | {"max_tokens": 20})
                assert chunks[-1]["choices"][0]["finish_reason"] == "length"
        while await asyncio.to_thread(num_in_flight, served):  # its own ends unread, too
            pass
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)  # as fast as it can now
        reader, writer = await asyncio.open_connection(sock=slow)
        await reader.readuntil(b"\r\n\r\n")
        data = await unchunked(reader)
        writer.close()
        chunks = events(data)
        tokens = [t for chunk in chunks for t in chunk["choices"][0]["token_ids"]]
        assert len(chunks) < len(tokens) == 3_000
        headers = {"Content-Type": "application/json", "X-Request-Index": "5"}
        body = slow_body | {"stream": False}
        whole = await asyncio.to_thread(served.ask, "POST", "/v1/completions", body, headers)
        (choice,) = whole.json()["choices"]
        assert tokens == choice["token_ids"]
        assert "".join(chunk["choices"][0]["text"] for chunk in chunks) == choice["text"]

    asyncio.run(read())


async def unchunked(reader: asyncio.StreamReader) -> bytes:
    """A body in HTTP's chunks."""
    data = b""
    while size := int(await reader.readline(), 16):
        data += await reader.readexactly(size)
        await reader.readexactly(2)
    return data


@pytest.mark.slow
def test_a_request_too_many_is_to_come_again():
    async def crowd(served: Served) -> None:
        clients = [await begin(served, ENDLESS)]
        clients.append(await raw(served, post_bytes("/v1/completions", ENDLESS)))
        while await asyncio.to_thread(num_in_flight, served) < 2:
            pass
        answer = await asyncio.to_thread(served.complete)
        assert (answer.status, answer.headers["Retry-After"]) == (429, "1")
        assert answer.error["type"] == "rate_limit_error"
        assert served.metric("vllm:num_requests_running") == 1
        assert served.metric("vllm:num_requests_waiting") == 1
        for _, writer in clients:
            writer.close()
        await until_idle(served)
        assert (await asyncio.to_thread(served.complete)).status == 200
        two = await asyncio.to_thread(served.complete, prompt=["a", "b"], max_tokens=2)
        assert [each["index"] for each in two.json()["choices"]] == [0, 1]
        assert (await asyncio.to_thread(served.complete, prompt=["a", "b", "c"])).status == 429

    flags = ["--device", "null", "--batch-size", "1", "--axis", "max-queued=1"]
    with serving(*flags, "--axis", f"max-model-len={LONGEST}") as served:
        asyncio.run(crowd(served))


@pytest.mark.slow
def test_a_request_that_takes_too_long_is_ended():
    flags = ["--axis", "request-timeout=1.5", "--axis", f"max-model-len={LONGEST}"]
    with serving(*NULL, *flags) as served:
        answer = served.complete(**ENDLESS)
        assert (answer.status, answer.error["type"]) == (408, "timeout_error")
        streamed = served.complete(**ENDLESS, stream=True)
        *chunks, last = events(streamed.body)
        assert chunks
        assert last["error"]["message"] == "not finished after 1.5 s"
        asyncio.run(until_idle(served))


@pytest.mark.slow
def test_chunks_have_the_usage_that_is_asked_for(served):
    async def ask(**options: bool) -> list[Any]:
        body = {
            "prompt": ["a b", "c"],
            "max_tokens": 4,
            "ignore_eos": True,
            "stream_options": options,
        }
        async with session(served) as http:
            return await stream(http, "/v1/completions", body)

    none, last, each = (
        asyncio.run(ask()),
        asyncio.run(ask(include_usage=True)),
        asyncio.run(ask(include_usage=True, continuous_usage_stats=True)),
    )
    assert all("usage" not in chunk for chunk in none)
    *chunks, total = last
    assert all("usage" not in chunk for chunk in chunks)
    assert (total["choices"], total["usage"]["completion_tokens"]) == ([], 8)
    assert total["usage"] == each[-1]["usage"]
    ended = [chunk for chunk in each[:-1] if chunk["choices"][0]["finish_reason"]]
    assert [chunk["usage"]["completion_tokens"] for chunk in ended] == [4, 4]
    assert all(chunk["usage"]["total_tokens"] for chunk in each)


@pytest.mark.slow
def test_the_client_of_openai(served):
    openai = pytest.importorskip("openai")  # takes a second, which only this test needs
    with openai.OpenAI(base_url=f"{served.url}/v1", api_key="none") as client:
        (model,) = client.models.list().data
        assert model.id == MODEL
        extra = {"ignore_eos": True}
        ask = {"model": model.id, "max_tokens": 6, "extra_body": extra}
        whole = client.completions.create(prompt="def", **ask)
        assert whole.usage.completion_tokens == 6
        assert whole.choices[0].finish_reason == "length"
        chunks = list(client.completions.create(prompt="def", stream=True, **ask))
        assert chunks[-1].choices[0].finish_reason == "length"
        messages = [{"role": "system", "content": "Be."}, {"role": "user", "content": "def"}]
        numbered = ask | {"messages": messages, "extra_headers": {"X-Request-Index": "3"}}
        chat = client.chat.completions.create(**numbered)
        assert chat.choices[0].message.role == "assistant"
        deltas = list(
            client.chat.completions.create(
                stream=True, stream_options={"include_usage": True}, **numbered
            )
        )
        assert deltas[0].choices[0].delta.role == "assistant"
        text = "".join(each.choices[0].delta.content or "" for each in deltas if each.choices)
        assert text == chat.choices[0].message.content
        assert deltas[-1].usage == chat.usage
        with pytest.raises(openai.NotFoundError, match="does not exist"):
            client.completions.create(prompt="x", model="other")
        with pytest.raises(openai.BadRequestError, match="maximum context length"):
            client.completions.create(prompt="x", model=model.id, max_tokens=LONGEST)
    gc.collect()


@pytest.mark.slow
def test_text_to_ids_and_back(served):
    text = "def f(x):\n    return 'ünïcödé 日本'"
    ids = served.ask("POST", "/tokenize", {"prompt": text}).json()
    assert ids["count"] == len(ids["tokens"])
    assert served.ask("POST", "/detokenize", {"tokens": ids["tokens"]}).json()["prompt"] == text
    messages = [{"role": "user", "content": "a"}]
    chat = served.ask("POST", "/tokenize", {"messages": messages}).json()
    plain = served.ask("POST", "/tokenize", {"prompt": "user: a\nassistant:"}).json()
    assert chat == plain
    long = served.ask("POST", "/tokenize", {"prompt": text * 2000}).json()
    assert served.ask("POST", "/detokenize", {"tokens": long["tokens"]}).json()["prompt"] == (
        text * 2000
    )


@pytest.mark.slow
def test_the_version_and_the_health_are_said(served):
    assert served.ask("GET", "/version").json().keys() == {"version"}
    for method, path in (("GET", "/health"), ("GET", "/ping"), ("POST", "/ping")):
        assert served.ask(method, path)[::2] == (200, b"")

"""Connections that say nothing: how many there may be, and for how long."""

import asyncio
import json
import resource
import socket
from contextlib import ExitStack, contextmanager, suppress

import psutil
import pytest
from processes import HANG_SECONDS, until
from served import NULL, Served, raw, serving

from engines.server.connections import raised_descriptor_limit

HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


@contextmanager
def soft_limit(most: int):
    """Of open files; who is started meanwhile inherits it."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_the_limit_of_open_files_is_raised_and_put_back():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with soft_limit(soft - 1):
        with raised_descriptor_limit():
            raised, still = resource.getrlimit(resource.RLIMIT_NOFILE)
        assert raised >= soft - 1
        assert raised in (hard, 1 << 16)
        assert still == hard
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (soft - 1, hard)


@pytest.mark.slow
def test_more_idle_connections_than_open_files_were_allowed_end_nothing():
    with ExitStack() as stack:
        with soft_limit(200):
            served = stack.enter_context(serving(*NULL))
        for _ in range(300):
            stack.enter_context(socket.create_connection(served.address, HANG_SECONDS))
        assert served.complete(max_tokens=2).status == 200
        assert served.end()[::2] == (0, "")


@pytest.mark.slow
def test_connections_beyond_the_most_are_told_so_and_make_no_difference():
    async def use(served: Served) -> None:
        held = [await raw(served, HEALTH) for _ in range(3)]
        for reader, _ in held:
            assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
        reader, writer = await raw(served, b"")
        head, body = (await reader.read()).split(b"\r\n\r\n")
        writer.close()
        assert b" 503 " in head
        assert b"Retry-After: " in head
        assert json.loads(body)["error"]["message"] == (
            "3 connections are open, and that is the most; try again later"
        )
        reader, writer = held[0]  # which can go on asking
        writer.write(HEALTH)
        assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
        writer.close()
        while not await is_well(served):  # it is told of the end a moment later
            pass
        for _, writer in held[1:]:
            writer.close()

    with serving(*NULL, "--axis", "max-connections=3") as served:
        asyncio.run(bounded(use(served)))
        assert served.end()[::2] == (0, "")


@pytest.mark.slow
def test_a_connection_without_a_whole_head_is_closed():
    async def use(served: Served) -> None:
        asked = await raw(served, HEALTH)
        assert b" 200 " in await asked[0].readuntil(b"\r\n\r\n")
        said = (b"", HEALTH[:-2], HEALTH[:5])
        for reader, writer in [asked, *[await raw(served, each) for each in said]]:
            assert await reader.read() == b""
            writer.close()

    with serving(*NULL, "--axis", "idle-timeout=0.2") as served:
        asyncio.run(bounded(use(served)))


@pytest.mark.slow
def test_thousands_that_are_idle_or_slow_hold_nobody_up_and_are_closed():
    """5,000 say nothing, 2,000 bring a byte of a head at a time; fewer under a lower limit."""
    with ExitStack() as stack:
        stack.enter_context(raised_descriptor_limit())
        most = min(7_000, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 500)
        served = stack.enter_context(serving(*NULL, "--axis", "idle-timeout=5"))
        assert served.complete(max_tokens=2).status == 200
        before = psutil.Process(served.process.pid).num_fds()
        held = [
            stack.enter_context(socket.create_connection(served.address, HANG_SECONDS))
            for _ in range(most)
        ]
        slow = set(held[: most * 2 // 7])
        for byte in HEALTH[:-4]:
            assert served.complete(max_tokens=2).status == 200
            for each in tuple(slow):
                try:
                    each.send(bytes([byte]))
                except OSError:  # it has been closed meanwhile, which is as well
                    slow.discard(each)
        for each in held:
            with suppress(ConnectionError):
                assert each.recv(1) == b"", "it is closed without an answer"
        assert served.complete(max_tokens=2).status == 200
        until(lambda: psutil.Process(served.process.pid).num_fds() <= before + 1)
        assert served.end()[::2] == (0, "")


async def is_well(served: Served) -> bool:
    try:
        reader, writer = await raw(served, HEALTH)
        head = await reader.readuntil(b"\r\n\r\n")
    except (OSError, asyncio.IncompleteReadError):
        return False
    writer.close()
    return b" 200 " in head


async def bounded(work) -> None:
    async with asyncio.timeout(HANG_SECONDS):
        await work

"""From its start to its end, however that comes."""

import asyncio
import json
import operator
import signal

import psutil
import pytest
from processes import HANG_SECONDS, is_alive, until
from served import NULL, Served, events, post_bytes, raw, serving, until_idle

LONG = ["--axis", "max-model-len=200000"]
ENDLESS = {"prompt": [1], "max_tokens": 199_999, "ignore_eos": True, "stream": True}
SHORT = ENDLESS | {"max_tokens": 3000}


def core_of(served: Served) -> psutil.Process:
    (core,) = psutil.Process(served.process.pid).children()
    return core


Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def begin(served: Served, body: dict = ENDLESS) -> Stream:
    """A stream that has brought its first event."""
    reader, writer = await raw(served, post_bytes("/v1/completions", body))
    await reader.readuntil(b"data: ")
    return reader, writer


async def rest(stream: Stream) -> bytes:
    """All that comes of it from there."""
    reader, writer = stream
    try:
        async with asyncio.timeout(HANG_SECONDS):
            return await reader.read()
    finally:
        writer.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "number",
    [
        signal.SIGTERM,
        *(pytest.param(each, marks=pytest.mark.slow) for each in (signal.SIGINT, signal.SIGHUP)),
    ],
)
def test_running_requests_end_before_it_does(number, tmp_path):
    async def use(served: Served) -> None:
        core = core_of(served)
        stream = await begin(served, SHORT)
        served.process.send_signal(number)
        refused = await asyncio.to_thread(served.ask, "GET", "/health")
        if refused.status == 503:  # else it had no time to hear the signal
            late = await asyncio.to_thread(served.complete)
            assert (late.status, late.error["message"]) == (503, "the server is stopping")
        data = await rest(stream)
        assert b'"finish_reason":"length"' in data
        assert b"data: [DONE]" in data
        status, _, err = await asyncio.to_thread(served.end, number)
        assert (status, err) == (0, "")
        assert not core.is_running()

    with serving(*NULL, *LONG, "--axis", f"grace={HANG_SECONDS}", TMPDIR=str(tmp_path)) as served:
        asyncio.run(use(served))
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize(
    "flags", [["--axis", "grace=0.1"], pytest.param([], marks=pytest.mark.slow)]
)
def test_those_that_do_not_end_in_time_are_aborted(flags):
    """After the time of grace, or at the second signal."""

    async def use(served: Served) -> None:
        stream = await begin(served)
        served.process.send_signal(signal.SIGTERM)
        if not flags:
            while (await asyncio.to_thread(served.ask, "GET", "/health")).status == 200:
                pass
            served.process.send_signal(signal.SIGTERM)
        data = await rest(stream)
        assert b'"finish_reason":"abort"' in data
        assert b"data: [DONE]" in data

    with serving(*NULL, *LONG, *flags) as served:
        asyncio.run(use(served))
        assert served.end()[::2] == (0, "")


@pytest.mark.slow
@pytest.mark.landing
def test_without_its_core_it_ends_with_one_sentence():
    async def use(served: Served) -> None:
        stream = await begin(served)
        core = core_of(served)
        core.kill()
        data = await rest(stream)
        assert b"the engine core process (pid %d) was killed by SIGKILL" % core.pid in data
        status, _, err = await asyncio.to_thread(served.process.wait), *served.process.communicate()
        assert status == 3
        assert err == f"gcbench: the engine core process (pid {core.pid}) was killed by SIGKILL\n"

    with serving(*NULL, *LONG) as served:
        asyncio.run(use(served))


@pytest.mark.slow
def test_without_its_front_end_the_core_ends_at_once(tmp_path):
    with serving(*NULL, *LONG, "--worker", "process", TMPDIR=str(tmp_path)) as served:
        family = psutil.Process(served.process.pid).children(recursive=True)
        assert len(family) >= 2

        async def kill() -> None:
            stream = await begin(served)
            served.process.kill()
            await rest(stream)

        asyncio.run(kill())
        served.process.wait()
        until(lambda: not any(map(is_alive, family)))  # the kernel's signal may come later
    with serving(*NULL, TMPDIR=str(tmp_path)) as another:
        # The workers' folder goes with the next server's start, for nobody else was left to do it.
        (folder,) = tmp_path.iterdir()
        assert another.end()[::2] == (0, "")
    assert not folder.exists()


@pytest.mark.slow
def test_five_hundred_requests_leave_no_descriptor():
    """In either process."""

    async def use(served: Served) -> None:
        front_end, core = psutil.Process(served.process.pid), core_of(served)

        def descriptors() -> list[int]:
            return [each.num_fds() for each in (front_end, core)]

        def some() -> None:
            for i in range(250):
                served.complete(max_tokens=2, stream=bool(i % 2))

        await asyncio.to_thread(some)
        await until_idle(served)
        before = descriptors()
        await asyncio.to_thread(some)
        await until_idle(served)
        # The last connection's end may come later.
        until(lambda: all(map(operator.le, descriptors(), before)))

    with serving(*NULL) as served:
        asyncio.run(use(served))


@pytest.mark.slow
def test_a_file_says_when_and_where(tmp_path):
    ready = tmp_path / "ready.json"
    with serving(*NULL, "--ready-file", str(ready), "--served-model-name", "mine") as served:
        said = json.loads(ready.read_text())
        assert said == {"url": served.url, "model": "mine"}
        assert served.complete(model="mine").status == 200
        data = served.complete(model="mine", stream=True).body
        assert events(data)[0]["model"] == "mine"
        assert served.end() == (0, "", "")
    assert list(tmp_path.iterdir()) == [ready]

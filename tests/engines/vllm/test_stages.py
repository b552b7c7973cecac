"""Stages of a step, counted in classes of vLLM's names."""

import asyncio
import sys
from collections import Counter
from types import SimpleNamespace

import pytest

from engines.vllm import stages
from engines.vllm.host_process import HostProcess
from gcbench.opcodes import OpcodeCounter
from harness.trial.stage_meters import Bytecodes, CpuTime

pytestmark = pytest.mark.usefixtures("no_collector")


class Scheduler:
    def schedule(self, rows):
        return sum(row * row for row in range(rows))

    def update_from_output(self, rows):
        return self.schedule(rows) + sum(row for row in range(2 * rows))


class AsyncLLM:
    async def add_request(self):
        await asyncio.sleep(0)
        return 3

    async def generate(self, wait=asyncio.sleep):
        for number in range(await self.add_request()):
            await wait(0)
            yield number


PRETENDED = {
    "vllm.v1.core.sched.scheduler": SimpleNamespace(Scheduler=Scheduler),
    "vllm.v1.engine.async_llm": SimpleNamespace(AsyncLLM=AsyncLLM),
}


@pytest.fixture
def process(monkeypatch):
    for name, module in PRETENDED.items():
        monkeypatch.setitem(sys.modules, name, module)
    own = [dict(vars(each)) for each in (Scheduler, AsyncLLM)]
    process = HostProcess()
    yield process
    stages.end(process)
    assert [dict(vars(each)) for each in (Scheduler, AsyncLLM)] == own, "put back"


def bytecodes(function, *args):
    counter = OpcodeCounter()
    with counter:
        function(*args)
    return counter.num_opcodes


def counted(process):
    return {each.stage: (each.calls, each.amount) for each in stages.end(process)}


def test_a_stage_has_its_own_bytecodes_and_not_those_of_a_stage_that_it_calls(process):
    scheduler = Scheduler()
    schedule = bytecodes(scheduler.schedule, 7)
    both = bytecodes(scheduler.update_from_output, 7)
    stages.begin(process, Bytecodes)
    assert scheduler.update_from_output(7) == scheduler.schedule(7) + sum(range(14))
    assert counted(process) == {
        "schedule": (2, 2 * schedule),
        "update_from_output": (1, both - schedule),
    }


async def read(stream):
    return [item async for item in stream]


@pytest.mark.parametrize("meter", [CpuTime, Bytecodes])
def test_streams_say_what_they_said_and_their_calls_are_counted(process, meter):
    async def many():
        return await asyncio.gather(*(read(AsyncLLM().generate()) for _ in range(20)))

    stages.begin(process, meter)
    assert asyncio.run(many()) == [[0, 1, 2]] * 20
    found = counted(process)
    assert found["deliver"][0] == 4 * 20, "three items and the end"
    assert found["add"][0] == 20
    assert ("all" in found) == (meter is CpuTime)


def test_bytecodes_of_streams_repeat(process):
    amounts = []
    for _ in range(2):
        stages.begin(process, Bytecodes)
        asyncio.run(read(AsyncLLM().generate()))
        amounts.append(counted(process))
    assert amounts[0] == amounts[1]
    assert amounts[0]["deliver"][1] > 0


def test_what_interrupts_a_stream_reaches_it(process):
    ended = []

    async def wait(_):
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("waiting")

    async def cancelled():
        task = asyncio.create_task(read(AsyncLLM().generate(wait)))
        for _ in range(5):
            await asyncio.sleep(0)
        task.cancel()
        await task

    stages.begin(process, CpuTime)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())
    assert ended == ["waiting"]


def test_nothing_is_counted_where_nobody_has_begun(process):
    Scheduler().schedule(3)
    assert stages.end(process) == []


class Ticks(Bytecodes):
    """Counts one for each part of a stage that it is to run."""

    def __init__(self):
        self.parts = Counter()

    def run(self, stage, function, *args, **kwargs):
        self.parts[stage] += 1
        return function(*args, **kwargs)

    def totals(self, *_):
        return dict(self.parts)


def test_each_stream_is_metered_and_nothing_made_of_some(process):
    async def many():
        return await asyncio.gather(*(read(AsyncLLM().generate()) for _ in range(20)))

    stages.begin(process, Ticks)
    asyncio.run(many())
    # Each of three items is asked for and resumed once, the first twice; the end is asked for.
    assert counted(process)["deliver"] == (80, 20 * 8)

"""vLLM's modules read a clock that its steps alone move on."""

import sys
import time
from types import ModuleType

import pytest

from engines.scripted_clock import STEP_SECONDS
from engines.vllm.scripted_time import script_time


class Engine:
    """Two steps apart, each saying what its module's clocks show."""

    def __init__(self, module):
        self.module = module

    def step(self):
        return self.module.time.time(), self.module.time.monotonic()


@pytest.fixture
def modules(monkeypatch):
    """One of vLLM's, and another's."""
    made = {name: ModuleType(name) for name in ("vllm.of_a_test", "not_vllm")}
    for name, module in made.items():
        module.time = time
        monkeypatch.setitem(sys.modules, name, module)
    return made


def test_each_step_takes_as_long_whatever_the_clock_says(modules):
    engine = Engine(modules["vllm.of_a_test"])
    script_time(engine)
    before = time.time()
    (wall, monotonic), (later, _) = engine.step(), engine.step()
    assert wall == monotonic
    assert later - wall == pytest.approx(STEP_SECONDS, rel=1e-4)
    assert abs(wall - before) < 3600, "requests arrive by the clock of the machine"


def test_the_rest_of_the_process_keeps_its_clock(modules):
    script_time(Engine(modules["vllm.of_a_test"]))
    assert modules["not_vllm"].time is time
    assert modules["vllm.of_a_test"].time.perf_counter_ns is time.perf_counter_ns


def test_reading_it_executes_no_bytecode(modules):
    module = modules["vllm.of_a_test"]
    script_time(Engine(module))
    seen = []
    sys.setprofile(lambda frame, event, _: seen.append(event))
    module.time.monotonic()
    sys.setprofile(None)
    assert "call" not in seen

"""The clock that an engine's modules read where steps take no time."""

import sys
import time
from types import ModuleType

import pytest

from engines.scripted_clock import STEP_SECONDS, script_clock


def test_between_two_steps_is_always_the_same_to_the_last_digit(monkeypatch: pytest.MonkeyPatch):
    took = []
    for name in ("scripted_once", "scripted_again"):
        module = ModuleType(f"{name}.part")
        module.time = time
        monkeypatch.setitem(sys.modules, module.__name__, module)
        pass_on = script_clock(name, "time", "perf_counter")
        began = module.time.time()
        for _ in range(41):
            pass_on()
        took.append(module.time.perf_counter() - began)
    assert took[0] == took[1] == pytest.approx(41 * STEP_SECONDS, abs=1e-5)

"""Versions of a small engine, counted as `gcbench explain` counts them."""

import gc
import sys
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from gcbench.function_costs import counted_calls
from gcbench.opcodes import OpcodeCounter
from harness.explain.result import Side
from harness.trial.step_costs import StepCosts

NUM_REQUESTS = 64
NUM_STEPS = 3
FILE = "toy_engine/core.py"

ENGINE = """
class Request:
    def __init__(self):
        self.tokens = []

    @property
    def is_done(self):
        return len(self.tokens) > 100

class Engine:
    def __init__(self, count):
        self.requests = [Request() for _ in range(count)]
        self.kept = None
        self.log = [None] * 8

    def step(self):
        rows = self.schedule()
        self.update(rows)
        return self.outputs(rows)

    def schedule(self):
        rows = []
        for request in self.requests:
            if not request.is_done:
                rows.append(request)
        return rows

    def update(self, rows):
        kept = []
        for request in rows:
            token = self.sample(request)
            request.tokens.append(token)
        self.kept = kept

    def sample(self, request):
        return self.checked(len(request.tokens))

    def checked(self, value):
        return value & 255

    def outputs(self, rows):
        found = 0
        for request in rows:
            found += self.checked(len(request.tokens))
        return found
"""


def counted(root: Path, source: str) -> Side:
    """The version ``source``, written below ``root``, after a few steps have been counted.

    Wants a `frozen_heap`: before each step all is collected that other tests have left.
    """
    path = root / FILE
    path.parent.mkdir(parents=True)
    path.write_text(source)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(root), *sys.path])
        return _counted(root, compile(source, str(path), "exec"))


def _counted(root: Path, code: CodeType) -> Side:
    namespace: dict[str, Any] = {}
    exec(code, namespace)
    engine, counter = namespace["Engine"](NUM_REQUESTS), OpcodeCounter()
    gc.disable()
    try:
        for _ in range(2):
            engine.step()
        for _ in range(NUM_STEPS):
            # From an empty free list on each object is counted; none of before is freed.
            gc.collect()
            room: list[list[None]] = [[] for _ in range(2000)]
            with counter:
                engine.step()
            del room
    finally:
        gc.enable()
    calls = counted_calls(counter.tree, {"Engine.schedule": "schedule", "Engine.update": "update"})
    costs = StepCosts(
        num_steps=NUM_STEPS,
        num_rows=NUM_STEPS * NUM_REQUESTS,
        functions=calls.functions,
        calls=calls.calls,
    )
    metrics = {"bytecodes": counter.num_opcodes, "allocations": counter.num_allocations}
    return Side(label=root.name, roots=[str(root)], costs=costs, metrics=metrics)

"""What a stage of a step may be counted in, by the engine's process that it runs in."""

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from time import process_time_ns, thread_time_ns
from typing import Any

from gcbench.function_costs import counted_calls
from gcbench.opcodes import OpcodeCounter

ALL = "all"
"""The whole process; its CPU time alone is known."""


class _Thread(threading.local):
    """The stages that a thread is in, and the moment of its last change between two."""

    def __init__(self) -> None:
        self.stages: list[str] = []
        self.since = 0


class CpuTime:
    """CPU time of the thread that a stage runs in, in ns, less what reading it takes."""

    def __init__(self) -> None:
        self._thread = _Thread()
        self._totals: Counter[str] = Counter()
        self._reading_ns = 0
        lengths = []
        for _ in range(200):
            self.run("", int)
            lengths.append(self._totals.pop(""))
        self._reading_ns = round(median(lengths))
        self._began_ns = process_time_ns()

    def run(self, stage: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call it; what it takes is the stage's, and not that of one that has called it."""
        thread = self._thread
        self._change(thread)
        thread.stages.append(stage)
        try:
            return function(*args, **kwargs)
        finally:
            self._change(thread)
            thread.stages.pop()

    def _change(self, thread: _Thread) -> None:
        now = thread_time_ns()
        if thread.stages:
            self._totals[thread.stages[-1]] += now - thread.since - self._reading_ns
        thread.since = now

    def totals(self, stages: Mapping[str, str], own_files: tuple[str, ...]) -> dict[str, int]:
        """By stage, and `ALL`."""
        return {**self._totals, ALL: process_time_ns() - self._began_ns}


class _Counting(threading.local):
    """A thread's counter, one of a list of all."""

    def __init__(self, counters: list[OpcodeCounter]) -> None:
        self.counter = OpcodeCounter()
        self.is_on = False
        counters.append(self.counter)


class Bytecodes:
    """Bytecodes of a stage, without those of stages that it calls."""

    def __init__(self) -> None:
        self._counters: list[OpcodeCounter] = []
        self._thread = _Counting(self._counters)

    def run(self, stage: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call it and count, unless it is called by what is counted already."""
        thread = self._thread
        if thread.is_on:
            return function(*args, **kwargs)
        thread.is_on = True
        try:
            with thread.counter:
                return function(*args, **kwargs)
        finally:
            thread.is_on = False

    def totals(self, stages: Mapping[str, str], own_files: tuple[str, ...]) -> dict[str, int]:
        """By stage, ``stages`` being those of functions by their qualified names."""
        left_out = {Path(each).name for each in (*own_files, __file__)}
        totals: Counter[str] = Counter()
        for counter in self._counters:
            for each in counted_calls(counter.tree, stages).functions:
                if Path(each.file).name not in left_out:
                    totals[each.stage] += each.bytecodes
        return dict(totals)

"""Bytes that grow are told by step, request and block, with their line; what ends is no growth."""

import gc
from collections import deque
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
import torch
from small import CELL, engine, schedule

from engines.builtin.block_pool import BlockPool
from engines.builtin.engine import Engine
from harness.format import bytes_
from harness.trial.growing_lines import GrowingLine, growing_words, leak_metrics
from harness.trial.leaked_bytes import growing_lines

ENTRIES = [object() for _ in range(9_000)]
"""More than there are requests: what keeps them has no objects made."""


class Leaks:
    """What engines of a test keep; a method keeps a little more each time."""

    def __init__(self) -> None:
        self.kept: list[Any] = []
        self.entries = iter(ENTRIES)
        self.places, self.set, self.dict = deque[None](), set[object](), dict[object, None]()
        self.bytes = bytearray()
        self.array, self.joined = np.zeros(9), np.zeros(9)
        self.cache = lru_cache(1000)(lambda entry: (entry, 1.0))
        self.recent = deque[object](maxlen=300)

    def shared_int(self) -> None:
        self.kept.append(len(self.kept) % 200)

    def place(self) -> None:
        self.places.append(None)

    def member(self) -> None:
        self.set.add(next(self.entries))

    def key(self) -> None:
        self.dict[next(self.entries)] = None

    def byte(self) -> None:
        self.bytes.append(0)

    def enlarged(self) -> None:
        self.array.resize(len(self.array) + 1, refcheck=False)

    def joined_array(self) -> None:
        self.joined = np.append(self.joined, 1.0)

    def tensor(self) -> None:
        length = len(self.kept[0]) if self.kept else 9
        self.kept[:] = [torch.zeros(length + 1)]

    def cached(self) -> None:
        self.cache(next(self.entries))

    def last(self) -> None:
        self.recent.append(next(self.entries))


EACH = {
    "shared_int": ("list", 8),
    "place": ("deque", 8),
    "member": ("set", 8),
    "key": ("dict", 16),
    "byte": ("bytearray", 1),
    "enlarged": ("", 8),
    "joined_array": ("", 8),
    "tensor": ("", 4),
}


@pytest.fixture(autouse=True)
def others_heap_apart() -> Iterator[None]:
    gc.freeze()
    yield
    gc.unfreeze()


WHEN: dict[str, tuple[type, str, Callable[..., int]]] = {
    "step": (Engine, "step", lambda: 1),
    "request": (Engine, "_finish", lambda slots, *_: len(slots)),
    "block": (BlockPool, "allocate", int),
}


def leak(monkeypatch, kind: str, per: str) -> None:
    """Have an engine keep a little more as often as it says."""
    of, name, times = WHEN[per]
    own, keep = getattr(of, name), getattr(Leaks(), kind)

    def leaking(self, *arguments):
        for _ in range(times(*arguments)):
            keep()
        return own(self, *arguments)

    monkeypatch.setattr(of, name, leaking)


def left(longest: int = 40) -> list[GrowingLine] | None:
    of = schedule([longest] * 4)
    return growing_lines(engine(of), of, package="trial", block_size=16, batch_size=CELL.batch_size)


@pytest.mark.parametrize(
    ("kind", "per"), [*((kind, "request") for kind in EACH), ("byte", "step"), ("place", "block")]
)
def test_what_grows_is_told_with_its_line_and_nothing_else(monkeypatch, kind, per):
    leak(monkeypatch, kind, per)
    what, size = EACH[kind]
    (line,) = left()
    assert (line.what, line.rates) == (what, {per: size})
    assert line.file.endswith("test_leaked_bytes.py")
    first = getattr(Leaks, kind).__code__.co_firstlineno
    assert first < line.line <= first + 5
    metrics = leak_metrics([line])
    assert metrics.pop(f"leaked_bytes_per_{per}") == size
    assert set(metrics.values()) == {0}
    where = f"{what or 'new objects'} at {line.file}:{line.line}"
    assert growing_words(line) == f"{bytes_(size)} per {per}, {where}"


@pytest.mark.parametrize("kind", ["cached", "last"])
def test_what_fills_does_not_grow(monkeypatch, kind):
    leak(monkeypatch, kind, "request")
    assert left() == []
    assert set(leak_metrics([]).values()) == {0}


def test_requests_that_are_too_short_tell_nothing():
    assert left(longest=20) is None
    assert leak_metrics(None) == {}

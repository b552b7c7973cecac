"""Who called the collector: the line, whatever generation, and no path of a machine."""

import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from gcbench.relative_file import relative_file
from harness.collector.callers import CallerLog, SettingLog


@pytest.fixture(autouse=True)
def by_hand_alone(frozen_heap: None) -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


class Culprit:
    def collect(self, generation: int) -> int:
        return gc.collect(generation)


def test_every_collection_is_charged_to_the_line_that_called_for_it():
    log = CallerLog()
    gc.collect()
    log.start()
    for generation in (0, 2, 0):
        Culprit().collect(generation)
    gc.collect(1)
    calls = log.stop()
    gc.collect()
    line = Culprit.collect.__code__.co_firstlineno + 1
    assert [(call.generation, call.count) for call in calls] == [(0, 2), (2, 1), (1, 1)]
    assert [call.line for call in calls[:2]] == [line, line]
    assert [call.function for call in calls] == [
        *["Culprit.collect"] * 2,
        "test_every_collection_is_charged_to_the_line_that_called_for_it",
    ]
    assert {Path(call.file).name for call in calls} == {"test_callers.py"}
    assert not any(Path(call.file).is_absolute() for call in calls)
    log.start()
    assert log.stop() == [], "each window by itself"


def test_who_sets_the_collector_is_noted_and_may_be_kept_from_it():
    log, own, before = SettingLog(), gc.set_threshold, gc.get_threshold()
    log.start(are_carried_out=False)
    taken = gc.freeze
    gc.set_threshold(1, 2, 3)
    gc.freeze()
    (calls, taken_later) = log.stop(), gc.get_freeze_count()
    assert [(call.name, call.generation, call.count) for call in calls] == [
        ("set_threshold", -1, 1),
        ("freeze", -1, 1),
    ]
    assert {call.function for call in calls} == {
        "test_who_sets_the_collector_is_noted_and_may_be_kept_from_it"
    }
    assert gc.set_threshold is own
    assert gc.get_threshold() == before
    taken()
    assert gc.get_freeze_count() > taken_later, "a name that was taken does what it says again"
    log.start(are_carried_out=True)
    gc.set_threshold(1000, 2, 3)
    assert [call.name for call in log.stop()] == ["set_threshold"]
    assert gc.get_threshold() == (1000, 2, 3)
    gc.set_threshold(*before)
    assert log.stop() == []


def test_a_file_is_named_from_its_package_on(tmp_path, monkeypatch):
    assert relative_file(np.__file__) == "numpy/__init__.py"
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(tmp_path / "inner")])
    assert relative_file(str(tmp_path / "inner" / "engine" / "core.py")) == "engine/core.py"
    assert relative_file("/elsewhere/engine/core.py") == "core.py"
    assert relative_file("<string>") == "<string>"

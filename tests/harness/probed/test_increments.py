"""The incremental collector of CPython 3.14.0 to 3.14.4, by records of one that has run."""

import json
from pathlib import Path

import numpy as np
import pytest
from golden_text import reported

from gcbench import probe
from harness.probed.result import ProbeResult
from harness.probed.ring import Ring
from harness.probed.series import CounterSeries
from harness.probed.watched import Watched
from harness.report.collection_words import kind_words, kinds_words

RECORDED = json.loads(Path(__file__).with_name("increments.json").read_text())


@pytest.fixture
def watched(tmp_path) -> Watched:
    """Its ring as it was when the process ended."""
    records = np.array(RECORDED["records"], np.int64)
    words = np.zeros(probe.SIZE // 8, np.int64)
    words[probe.VERSION], words[probe.WRITTEN] = probe.MAGIC, len(records)
    words[probe.HEADER :][: records.size] = records.ravel()
    text = words[: probe.HEADER].view(np.uint8)
    text[probe.PYTHON : probe.PYTHON + 6] = list(RECORDED["python"].encode())
    text[probe.COMMAND : probe.COMMAND + 7] = list(b"pyodide")
    path = tmp_path / "0-1.ring"
    words.tofile(path)
    return Watched(Ring(path), 1, 0, CounterSeries())


def test_each_increment_is_recorded_and_called_one(watched):
    watched.take(has_ended=True)
    process = watched.described()
    assert [each.collections for each in process.generations] == [0, 40, 1]
    assert [each.objects_freed for each in process.generations] == [0, 32_885, 27_117]
    about = {"status": 0, "began_ns": 0, "wall_seconds": 1.0, "boot_id": "", "not_probed": []}
    text = reported(ProbeResult(name="pyodide", processes=[process], **about), details=True)
    assert "full pass of pyodide (unknown)" in text
    assert "increment" in text
    assert "generation 1" not in text


def test_an_increment_that_finds_nothing_due_is_in_no_statistics():
    """So counts by `gc.get_stats` are of work, and those by callbacks of stops."""
    increments = [each for each in RECORDED["records"] if each[3] == 1]
    assert RECORDED["collections"][1] == 5
    assert sum(duration < 10_000 for _, duration, *_ in increments) == 34
    assert sum(freed for *_, freed in increments if freed) == 32_885


@pytest.mark.parametrize("python", ["3.14.0", "3.14.4"])
def test_what_an_incremental_collector_counts_is_no_generation(python):
    assert kinds_words(python) == "young/incr./full"
    assert [kind_words(kind, python) for kind in range(3)] == ["young", "increment", "full pass"]


@pytest.mark.parametrize("python", ["3.13.9", "3.14.5", "3.14.10", "3.15.0rc1", ""])
def test_all_others_have_generations(python):
    assert kinds_words(python) == "g0/g1/g2"
    assert kind_words(1, python) == "generation 1"

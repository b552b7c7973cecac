"""A ring that is not as its process writes it is refused, and none takes a descriptor."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gcbench import probe
from harness.probed.ring import GENERATION, Ring
from harness.probed.run import probed_environment


@pytest.fixture
def path(tmp_path) -> Path:
    environment = probed_environment(tmp_path, {**os.environ, "PYTHONPATH": ""})
    subprocess.run([sys.executable, "-c", "import gc; gc.collect()"], env=environment, check=True)
    (found,) = tmp_path.glob("*.ring")
    return found


def words(path: Path) -> np.memmap:
    return np.memmap(path, np.int64, "r+")


def test_a_ring_keeps_no_descriptor(path):
    before = len(list(Path("/proc/self/fd").iterdir()))
    rings = [Ring(path) for _ in range(10)]
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert len({ring.image for ring in rings}) == 1


@pytest.mark.parametrize("written", [0, -1, 2**62])
def test_a_reader_never_goes_backwards_nor_far_ahead(path, written):
    ring = Ring(path)
    assert len(ring.take(has_ended=True)) > 0
    words(path)[probe.WRITTEN] = written
    with pytest.raises(ValueError, match="its ring says"):
        ring.take(has_ended=True)


def test_a_record_of_no_generation_is_refused(path):
    words(path)[probe.HEADER + GENERATION] = 3
    with pytest.raises(ValueError, match="no generation"):
        Ring(path).take(has_ended=True)


def test_a_file_of_another_size_or_version_is_refused(path):
    words(path)[probe.VERSION] -= 1
    with pytest.raises(ValueError, match="of another version"):
        Ring(path)
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="of another version"):
        Ring(path)

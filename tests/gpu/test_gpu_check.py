"""Calls of ``make gpu-check``, made on the CPU: a part runs and writes its result."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WRITTEN = {
    "tests": "gpu-tests.xml",
    "copies": "gpu-copies.json",
    "verdict": "gpu-verdict.json",
    "calibrate": "gpu-modelled.json",
}


@pytest.mark.slow
@pytest.mark.parametrize("part", WRITTEN)
def test_a_part_is_rehearsed_without_a_gpu(tmp_path, part):
    command = [sys.executable, "benchmarks/gpu_check.py", part, "--output", tmp_path, "--rehearse"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    written = tmp_path / WRITTEN[part]
    if written.suffix == ".json":
        json.loads(written.read_text())

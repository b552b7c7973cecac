"""Calls of ``make gpu-check``, made on the CPU: a part runs and writes its result."""

import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.calibrate.points import grid, sized_config

ROOT = Path(__file__).parents[2]
WRITTEN = {
    "tests": "gpu-tests.xml",
    "copies": "gpu-copies.json",
    "launch": "gpu-launch.json",
    "verdict": "gpu-verdict.json",
    "calibrate": "gpu-modelled.json",
}


@pytest.mark.slow
@pytest.mark.parametrize("part", WRITTEN)
def test_a_part_is_rehearsed_without_a_gpu(tmp_path, part):
    command = [sys.executable, "benchmarks/gpu_check.py", part, "--output", tmp_path, "--rehearse"]
    command += ["--before", ROOT]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    written = tmp_path / WRITTEN[part]
    if written.suffix == ".json":
        json.loads(written.read_text())


def test_the_points_of_the_calibration_fit_its_model():
    flags = runpy.run_path(str(ROOT / "benchmarks" / "gpu_check.py"))["POINTS"]
    values = [list(map(int, each.split(","))) for each in flags[1::2]]
    assert flags[::2] == ["--batch-size", "--context", "--prefill"]
    assert sized_config(grid(*values), 3, device="cpu", model="opt-125m").max_model_len <= 2048

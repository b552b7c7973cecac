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


@pytest.mark.slow
def test_rounds_of_two_calls_are_one_verdict_and_a_call_goes_on_where_it_was(tmp_path):
    outputs = {"long": tmp_path / "one", "long_rest": tmp_path / "two"}
    for part, output in outputs.items():
        said = rehearsed(part, output)
        assert "capture" in said.partition("seconds of a trial")[2]
    again = rehearsed("long", outputs["long"])
    assert "medians of 15" in again
    (one,), (two,) = (list((output / "runs" / part).iterdir()) for part, output in outputs.items())
    command = [sys.executable, "-m", "harness", "report", "--merge", one, two]
    command += ["--output", tmp_path, "--json", tmp_path / "merged.json"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    merged = json.loads((tmp_path / "merged.json").read_text())
    assert merged["is_complete"]
    assert [each["samples"] for each in merged["cells"]] == [7, 7, 7]


def rehearsed(part, output):
    command = [sys.executable, "benchmarks/gpu_check.py", part, "--output", output, "--rehearse"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_points_of_the_calibration_fit_its_model():
    flags = runpy.run_path(str(ROOT / "benchmarks" / "gpu_check.py"))["POINTS"]
    values = [list(map(int, each.split(","))) for each in flags[1::2]]
    assert flags[::2] == ["--batch-size", "--context", "--prefill"]
    assert sized_config(grid(*values), 3, device="cpu", model="opt-125m").max_model_len <= 2048

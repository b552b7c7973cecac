"""The delivery `vllm_v1`, held against the release that it models."""

import json
import os
import subprocess
from pathlib import Path

import pytest
import v1_stages
from vllm_trials import cell, run, schedule, trial

from engines.registry import ENGINES
from engines.vllm.releases import VLLM
from harness.trial.spec import Mode

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("pinned_vllm")]


def bytecodes(engine: str) -> list[float]:
    launch = ENGINES.load(engine).launch("", VLLM.PINNED if engine != "builtin" else "")
    done = subprocess.run(
        [launch.interpreter, v1_stages.__file__, engine],
        cwd=Path(__file__).parents[3],
        env={**os.environ, **launch.environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_both_stages_execute_as_many_bytecodes():
    """Within a quarter each: what no text request without drafts asks for is left out."""
    ours, theirs = bytecodes("builtin"), bytecodes("vllm-hostpath")
    assert ours == [pytest.approx(each, rel=0.25) for each in theirs]


def test_a_step_holds_as_many_objects_and_collects_as_often(tmp_path):
    """Collections within a tenth: vLLM's scheduler makes objects for new blocks, ours does not."""
    of = schedule([120] * 256, [48] * 256)
    axes = {"batch_size": 256, "gc": "default"}
    cells = [cell("builtin", delivery="vllm_v1", **axes), cell("vllm-hostpath", **axes)]
    modes: tuple[Mode, ...] = ("tracked", "counts")
    ours, theirs = (run([trial(of, tmp_path, each, mode) for mode in modes]) for each in cells)
    names = ("tracked_peak_per_step", "gc_collections_per_1000_steps")
    for name, our, their in zip(names, ours, theirs, strict=True):
        assert our.metrics[name] == pytest.approx(their.metrics[name], rel=0.1)

"""The patches to vLLM do what the release does under random schedules; what does not is found."""

import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.random_schedules import differences, schedules_of
from engines.vllm.releases import VLLM

pytestmark = pytest.mark.slow

RELEASE = "0.33.0"
PATCHES = Path(__file__).parents[3] / "docs" / "vllm-patches"
SEEDS = list(range(30))
FEW = 12
PLANTED = {
    "a full block is cached late": (
        "vllm/v1/core/kv_cache_manager.py",
        "request.num_computed_tokens + num_new_tokens\n            num_tokens_need_slot",
        "request.num_computed_tokens\n            num_tokens_need_slot",
    ),
    "an encoder input is not sent again": (
        "vllm/v1/core/sched/scheduler.py",
        "if not self._pending_encoder_input_ids:",
        "if self._pending_encoder_input_ids:",
    ),
    "a latency is of the step before": (
        "vllm/v1/metrics/stats.py",
        "req_stats.last_token_ts = engine_core_timestamp",
        "req_stats.last_token_ts = req_stats.last_token_ts or engine_core_timestamp",
    ),
    "a placeholder too few": (
        "vllm/v1/core/sched/async_scheduler.py",
        "request.num_output_placeholders = num_placeholders",
        "request.num_output_placeholders = min(num_placeholders, 2)",
    ),
}


@pytest.fixture(scope="module")
def released() -> list[dict]:
    VLLM.prepare_release(RELEASE, print)
    return schedules_of(RELEASE, SEEDS)


@pytest.fixture
def patched(tmp_path, released) -> Path:
    tree = tmp_path / "tree"
    shutil.copytree(
        VLLM.layer(RELEASE) / "vllm", tree / "vllm", ignore=shutil.ignore_patterns("__pycache__")
    )
    subprocess.run(["git", "apply", *sorted(PATCHES.glob("*.patch"))], cwd=tree, check=True)
    return tree


def test_nothing_that_a_step_hands_out_is_another(released, patched):
    assert list(differences(released, schedules_of(str(patched), SEEDS))) == []
    counts: Counter[str] = Counter()
    for each in released:
        counts.update(each["counts"])
    assert min(counts[name] for name in ("preemptions", "aborts", "images")) >= 20
    assert counts["outputs"] > 10_000


@pytest.mark.parametrize("planted", PLANTED)
def test_a_patch_that_changes_something_is_found(planted, released, patched):
    path, before, after = PLANTED[planted]
    text = (patched / path).read_text()
    assert text.count(before) == 1
    (patched / path).write_text(text.replace(before, after))
    assert any(differences(released[:FEW], schedules_of(str(patched), SEEDS[:FEW])))

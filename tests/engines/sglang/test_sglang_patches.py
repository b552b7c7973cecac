"""The patches to SGLang do what the release does under random schedules; what does not is found."""

import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.random_schedules import differences, schedules_of
from engines.sglang.releases import SGLANG

pytestmark = pytest.mark.slow

RELEASE = "0.5.23"
PATCHES = Path(__file__).parents[3] / "docs" / "sglang-patches"
SEEDS = list(range(8))
MANAGERS = "sglang/srt/managers"
PLANTED = {
    "a column of another request": (
        f"{MANAGERS}/scheduler_components/output_streamer.py",
        'prompt_tokens=list(map(len, map(attrgetter("origin_input_ids"), reqs)))',
        'prompt_tokens=list(map(len, map(attrgetter("origin_input_ids"), reqs[::-1])))',
    ),
    "a stop token is passed over": (
        f"{MANAGERS}/schedule_batch.py",
        "if not params.ignore_eos and self._check_token_based_finish(",
        "if params.ignore_eos and self._check_token_based_finish(",
    ),
}


@pytest.fixture(scope="module")
def released() -> list[dict]:
    SGLANG.prepare_release(RELEASE, print)
    return schedules_of(RELEASE, SEEDS, "sglang")


@pytest.fixture
def patched(tmp_path, released) -> Path:
    tree = tmp_path / "tree"
    shutil.copytree(
        SGLANG.layer(RELEASE) / "sglang",
        tree / "python" / "sglang",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    subprocess.run(["git", "apply", *sorted(PATCHES.glob("*.patch"))], cwd=tree, check=True)
    return tree


def test_nothing_that_a_turn_hands_out_is_another(released, patched):
    assert list(differences(released, schedules_of(str(patched), SEEDS, "sglang"))) == []
    counts: Counter[str] = Counter()
    for each in released:
        assert not each["error"]
        counts.update(each["counts"])
    assert counts["aborts"] >= 20
    assert counts["outputs"] > 3_000


@pytest.mark.parametrize("planted", PLANTED)
def test_a_patch_that_changes_something_is_found(planted, released, patched):
    path, before, after = PLANTED[planted]
    path = patched / "python" / path
    text = path.read_text()
    assert text.count(before) == 1
    path.write_text(text.replace(before, after))
    assert any(differences(released[:4], schedules_of(str(patched), SEEDS[:4], "sglang")))

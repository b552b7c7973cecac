"""What finds changes, on a repository of SGLang's with one planted."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from engines.sglang.releases import SGLANG

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("pinned_sglang")]

STREAMER = "python/sglang/srt/managers/scheduler_components/output_streamer.py"
LINE = "        send_token_offset = req.send_token_offset\n"
SMALL = (
    *("--engine", "sglang-hostpath", "--num-requests", "16", "--batch-size", "16"),
    *("--prompt-lens", "20", "--output-lens", "40"),
)
NAME = ("-c", "user.name=A", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")


def git(repository: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", *NAME, *words], cwd=repository, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory, pinned_sglang: str) -> Path:
    """Four commits, the third of which has a list filled per request and step."""
    folder = tmp_path_factory.mktemp("repository")
    ignore = shutil.ignore_patterns("__pycache__")
    layer = SGLANG.layer(SGLANG.PINNED) / "sglang"
    shutil.copytree(layer, folder / "python" / "sglang", ignore=ignore)
    git(folder, "init", "-q", "-b", "main")
    path = folder / STREAMER
    text = path.read_text()
    assert text.count(LINE) == 1
    planted = text.replace(LINE, f"{LINE}        planted = [each for each in range(20)]\n")
    steps = ("released", text), ("noop", f"{text}\n"), ("planted", planted)
    for subject, each in (*steps, ("after", f"{planted}\n# after\n")):
        path.write_text(each)
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", subject)
    return folder


def said_by(folder: Path, *words: str) -> Any:
    """The document of a command that is to end with success."""
    done = subprocess.run(
        [sys.executable, "-m", "gcbench", *words, "--json", "-"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_bisect_finds_the_commit(repository, tmp_path):
    found = said_by(
        *(tmp_path, "bisect", "HEAD~3", "HEAD", "--repo", str(repository), *SMALL),
        *("--metric", "bytecodes_per_request_step"),
    )
    assert found["conclusion"] == "found"
    assert git(repository, "rev-parse", "HEAD~1") in json.dumps(found)


def test_explain_names_the_line(repository, tmp_path):
    found = said_by(tmp_path, "explain", "--against", "HEAD~3", "--repo", str(repository), *SMALL)
    assert "output_streamer.py" in json.dumps(found)


def test_collectors_are_compared(tmp_path):
    found = said_by(
        *(tmp_path, "compare", "--gc", "default,freeze", *SMALL, "--device", "null"),
        *("--heap-objects", "0", "--no-counting", "--rounds", "2"),
    )
    assert {each["axes"]["gc"] for each in found["cells"]} == {"default", "freeze"}
    assert not found["failures"]

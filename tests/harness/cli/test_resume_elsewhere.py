"""A comparison begun in one checkout and resumed after a commit, with other packages, elsewhere."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from scratch_repository import Repository

ROOT = Path(__file__).parents[3]
COMPARE = [
    "compare",
    "--device",
    "null",
    "--num-requests",
    "4",
    "--output-lens",
    "4",
    "--batch-size",
    "4",
    "--heap-objects",
    "0",
    "--representation",
    "list_of_lists",
    "--delivery",
    "per_request",
    "--gc",
    "default,disabled",
    "--rounds",
    "1",
    "--no-counting",
    "--quiet",
]
PACKAGES = ("dashboards", "engines", "gcbench", "harness", "workloads")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Repository:
    """A repository of gcbench's packages, with one commit."""
    repository = Repository(tmp_path_factory.mktemp("place") / "checkout")
    for name in PACKAGES:
        shutil.copytree(
            ROOT / name, repository.root / name, ignore=shutil.ignore_patterns("__pycache__")
        )
    (repository.root / ".gitignore").write_text("__pycache__/\n")
    repository.git("add", "--all")
    repository.git("commit", "--quiet", "-m", "All")
    return repository


def compare(checkout: Repository, *arguments: str, first_on_path: Path | None = None) -> str:
    """What a comparison says on standard error; "" is one that came to its end."""
    path = [str(first_on_path)] * bool(first_on_path) + [str(checkout.root)]
    output = ["--output", str(checkout.root.parent / "runs")]
    done = subprocess.run(
        [sys.executable, "-m", "harness", *COMPARE, *output, *arguments],
        cwd=checkout.root,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == (2 if done.stderr else 0)
    assert done.stderr.count("\n") <= 1
    return done.stderr


def test_it_is_refused_in_a_sentence_and_goes_on_where_it_was(checkout, tmp_path):
    assert compare(checkout) == ""
    (name,) = (folder.name for folder in (checkout.root.parent / "runs").iterdir())
    resume = ["--resume", name]

    metadata = tmp_path / "tokenizers-99.0.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: tokenizers\nVersion: 99.0\n")
    said = compare(checkout, *resume, first_on_path=tmp_path)
    assert re.search(r"dependency tokenizers \(.*, now 99\.0\)", said), said

    engine = checkout.root / "engines" / "nearest.py"
    before = engine.read_text()
    engine.write_text(f"{before}# a comment\n")
    assert "code: SHA-256 of the sources (" in compare(checkout, *resume)
    begun = checkout.git("rev-parse", "HEAD")
    checkout.git("commit", "--quiet", "--all", "-m", "A comment")
    now = checkout.git("rev-parse", "HEAD")
    assert f"code: commit ({begun[:10]}, now {now[:10]})" in compare(checkout, *resume)
    checkout.git("checkout", "--quiet", begun)

    trials = checkout.root.parent / "runs" / name / "trials"
    first, *_, last = trials.iterdir()
    for path, field, other, word in (
        (first, "cpu_model", "Another CPU", "machine: cpu model (Another CPU, now "),
        (last, "interpreter", "CPython 2.7.18", "interpreter (CPython 2.7.18, now "),
    ):
        stored = path.read_text()
        path.write_text(re.sub(rf'"{field}":"[^"]*"', f'"{field}":"{other}"', stored))
        assert word in compare(checkout, *resume)
        path.write_text(stored)

    assert compare(checkout, *resume) == ""

"""The scripts and the notebook of examples/ run as their README says."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"

pytestmark = pytest.mark.slow


def run(*words: str, folder: Path = EXAMPLES) -> str:
    environment = os.environ | {"MPLBACKEND": "agg"}
    ran = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_each_is_named_in_the_readme():
    named = (EXAMPLES / "README.md").read_text()
    tracked = subprocess.check_output(["git", "ls-files", "."], cwd=EXAMPLES, text=True).split()
    assert all(f"`{name}`" in named for name in tracked if name != "README.md")


def test_the_budget():
    assert "2 passed" in run("-m", "pytest", "-p", "no:cacheprovider", "test_budget.py")


def test_a_comparison(tmp_path):
    small = ["num_requests=8", "heap_objects=0", "rounds=3"]
    out = run(str(EXAMPLES / "compare.py"), *small, folder=tmp_path)
    assert out.startswith("freeze is ")
    assert (tmp_path / "compare.png").stat().st_size > 0


def test_changes():
    last = run("changes.py").splitlines()[-1]
    assert last.endswith("series moved between their last two commits.")
    assert int(last.split()[0]) > 0


def test_the_notebook():
    """Its code cells, in order, in one interpreter, as Jupyter would run them."""
    cells = json.loads((EXAMPLES / "history.ipynb").read_text())["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert all(not cell["outputs"] for cell in cells if cell["cell_type"] == "code")
    said = run("-c", "\n".join([*code, "print(len(moved), drawn)"]))
    assert all(int(number) > 0 for number in said.split())

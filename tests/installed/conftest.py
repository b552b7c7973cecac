"""A checkout to install from, and its wheel, made once."""

import shutil
import sys
from pathlib import Path

import pytest
from environments import run

ROOT = Path(__file__).parents[2]
BUILT = ("gcbench", "workloads", "engines", "harness", "dashboards", "distribution")
NAMED = ("pyproject.toml", "MANIFEST.in", "README.md", "LICENSE")


@pytest.fixture(scope="session")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This checkout's files in a folder named gcbench."""
    folder = tmp_path_factory.mktemp("parent") / "gcbench"
    for package in BUILT:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, folder / package, ignore=ignored)
    for name in NAMED:
        shutil.copy(ROOT / name, folder)
    return folder


@pytest.fixture(scope="session")
def wheel(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of that checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    options = ["--no-deps", "--no-index", "--no-build-isolation", "--quiet"]
    command = [sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", str(folder)]
    done = run([*command, str(clone)], clone)
    assert done.returncode == 0, done.stderr
    (built,) = folder.glob("*.whl")
    return built

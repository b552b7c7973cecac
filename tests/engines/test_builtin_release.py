"""Another tree's engine under this harness, in a real interpreter."""

import shutil
from pathlib import Path

import msgspec
import pytest

from engines.builtin.release import launch_builtin
from engines.registry import ENGINES

ROOT = Path(__file__).parents[2]


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A copy of this tree's engines, beside a harness that must not be taken."""
    monkeypatch.setenv("GCBENCH_CACHE", str(tmp_path / "cache"))
    ignored = shutil.ignore_patterns("__pycache__", "vllm")
    shutil.copytree(ROOT / "engines", tmp_path / "tree" / "engines", ignore=ignored)
    (tmp_path / "tree" / "harness").mkdir()
    (tmp_path / "tree" / "harness" / "__init__.py").write_text("raise RuntimeError('not mine')")
    return tmp_path / "tree"


def where(release: Path | str) -> dict[str, str]:
    """The files from which a trial's interpreter would take engine and harness."""
    import os
    import subprocess

    interpreter, environment = launch_builtin("", str(release))
    script = (
        "import json, engines.builtin.engine as e, harness.metrics as m, workloads as w;"
        "print(json.dumps({'engines': e.__file__, 'harness': m.__file__, 'workloads': w.__file__}))"
    )
    done = subprocess.run(
        [interpreter, "-P", "-c", script],
        env=os.environ | environment,
        capture_output=True,
        check=True,
    )
    return {
        name: str(Path(path).resolve().parents[1 if name != "engines" else 2])
        for name, path in msgspec.json.decode(done.stdout).items()
    }


def test_only_the_engines_come_from_the_tree(tree):
    here = str(ROOT)
    assert where(tree) == {"engines": str(tree), "harness": here, "workloads": here}
    assert where(tree) == where(tree), "the second time its place is there already"
    assert where("") == {"engines": here, "harness": here, "workloads": here}


def test_what_is_no_tree_of_gcbench_is_refused_in_a_sentence(tmp_path):
    engine = ENGINES.load("builtin")
    with pytest.raises(ValueError, match="no engines/builtin there; give the top folder"):
        engine.launch("", str(tmp_path))
    with pytest.raises(ValueError, match=r"0\.32\.0: no engines/builtin there"):
        engine.launch("", "0.32.0")


def test_a_cache_that_cannot_be_written_is_named(tree, monkeypatch):
    in_the_way = tree / "file"
    in_the_way.write_text("")
    monkeypatch.setenv("GCBENCH_CACHE", str(in_the_way))
    with pytest.raises(ValueError, match="GCBENCH_CACHE"):
        launch_builtin("", str(tree))

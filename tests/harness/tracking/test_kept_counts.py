"""Counts that a gate keeps: found again for the same files, and for no others."""

import sys
from pathlib import Path

import msgspec
import pytest
from small import CELL, answer

from harness.experiment.plan import exact_turns
from harness.experiment.store import trial_key
from harness.tracking.gate.kept_counts import KeptCounts
from harness.tracking.gate.plan import exact_plan, pair
from harness.tracking.gate.trees import Tree
from harness.trial.spec import Trial

SCHEDULES = {CELL.workload: "hash"}


@pytest.fixture
def tree(tmp_path, monkeypatch):
    monkeypatch.setenv("GCBENCH_CACHE", str(tmp_path / "cache"))

    def laid_out(name: str, package_sha: str = "abc") -> Tree:
        folder = tmp_path / name
        (folder / "engines" / "builtin").mkdir(parents=True, exist_ok=True)
        (folder / "engines" / "builtin" / "engine.py").write_text("")
        return Tree(
            asked="main", sha="f" * 40, subject="s", folder=str(folder), package_sha=package_sha
        )

    return laid_out


def counted(tree: Tree, seed: int = 0, cell=CELL):
    """A plan with one commit's cell, and a result a trial of it that names the folder."""
    plan = exact_plan("gate", [pair("x", cell, tree.folder, tree.folder, 0)], SCHEDULES, seed)
    outcomes = {}
    for turn in exact_turns(plan):
        if turn.mode == "outputs":  # its log is in another place, and not kept
            continue
        asked = Trial(cell=turn.cell, schedule_path="", schedule_sha256="", mode=turn.mode)
        found = answer(asked, {"num_steps": float(turn.place)})
        key = trial_key(turn.round, turn.place, turn.cell, turn.mode)
        outcomes[key] = msgspec.structs.replace(found, code_root=tree.folder)
    return plan, outcomes


def test_the_same_files_in_another_folder_are_found_with_that_folder(tree):
    kept = KeptCounts.of_user("engines")
    first, second = tree("first"), tree("second")
    plan, outcomes = counted(first)
    assert kept.load(plan, first) == {}
    kept.save(plan, first, outcomes)
    assert kept.load(plan, first) == outcomes
    plan, theirs = counted(second)
    assert kept.load(plan, second) == theirs


def test_nothing_is_found_where_anything_that_decides_a_count_is_another(
    tree, tmp_path, monkeypatch
):
    kept = KeptCounts.of_user("engines")
    first = tree("first")
    plan, outcomes = counted(first)
    kept.save(plan, first, outcomes)
    with monkeypatch.context() as newer:
        (tmp_path / "harness").mkdir()
        newer.setattr("harness.__file__", str(tmp_path / "harness" / "__init__.py"))
        assert kept.load(plan, first) == {}, "a newer gcbench may count otherwise"
    assert kept.load(plan, first) == outcomes
    assert kept.load(plan, tree("first", package_sha="def")) == {}
    assert kept.load(counted(first, seed=1)[0], first) == {}
    smaller = msgspec.structs.replace(CELL, batch_size=4)
    assert kept.load(counted(first, cell=smaller)[0], first) == {}
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    assert kept.load(plan, first) == {}
    monkeypatch.delenv("PYTHONPATH")
    other = tree("other")
    (Path(other.folder) / "engines" / "builtin" / "engine.py").write_text("x = 1")
    assert kept.load(counted(other)[0], other) == {}


def test_the_environment_decides_and_what_only_a_shell_has_does_not(tree, monkeypatch):
    kept = KeptCounts.of_user("engines")
    first = tree("first")
    plan, outcomes = counted(first)
    kept.save(plan, first, outcomes)
    with monkeypatch.context() as other:
        other.setenv("ENGINE_EXTRA", "1")
        assert kept.load(plan, first) == {}
    for name in ("PWD", "OLDPWD", "SHLVL", "_", "TERM", "TERM_PROGRAM", "SSH_TTY", "GITHUB_RUN_ID"):
        monkeypatch.setenv(name, "another")
    monkeypatch.setenv("PYTHONHASHSEED", "7")  # no trial gets it
    assert kept.load(plan, first) == outcomes


def test_what_is_imported_from_a_checkout_decides_by_its_files(tree, tmp_path):
    """But not the package that is laid out, nor a run's own copies of it."""
    python = tmp_path / "env" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    checkout = tmp_path / "a checkout"
    for path in ("src/help/h.py", "engines/core.py", "results/1-gate/code/head/engines/core.py"):
        (checkout / path).parent.mkdir(parents=True)
        (checkout / path).write_text("")
    info = tmp_path / "env/lib/python3.11/site-packages/help-1.0.dist-info"
    info.mkdir(parents=True)
    origin = {"url": checkout.as_uri(), "dir_info": {"editable": True}}
    (info / "direct_url.json").write_bytes(msgspec.json.encode(origin))
    kept = KeptCounts.of_user("engines")
    first = tree("first")
    cell = msgspec.structs.replace(CELL, python=str(python))
    plan, outcomes = counted(first, cell=cell)
    kept.save(plan, first, outcomes)
    (checkout / "engines/core.py").write_text("x = 1")
    (checkout / "results/1-gate/code/head/engines/core.py").write_text("x = 1")
    assert kept.load(plan, first) == outcomes
    (checkout / "src/help/h.py").write_text("x = 1")
    assert kept.load(plan, first) == {}


def test_a_damaged_file_is_not_read(tree):
    kept = KeptCounts.of_user("engines")
    first = tree("first")
    plan, outcomes = counted(first)
    kept.save(plan, first, outcomes)
    damaged = next(iter(kept.folder.glob("*.json")))
    damaged.write_bytes(b"{")
    assert len(kept.load(plan, first)) == len(outcomes) - 1

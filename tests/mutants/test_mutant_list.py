"""The list of mutants does not rot, and a mutant is tried on a copy alone."""

import subprocess
import sys

import pytest
from mutant_list import ROOT, Mutant, read_mutants
from mutated_tree import MutatedTree, TestsError

MUTANTS = read_mutants()
TEST = "from decision import LIMIT\n\ndef test_{name}():\n    assert {what}\n"


def test_what_each_mutant_changes_stands_once_and_its_tests_are_there():
    for mutant in MUTANTS:
        source = (ROOT / mutant.file).read_text()
        assert mutant.applied(source) != source, mutant
        compile(mutant.applied(source), mutant.file, "exec")
        for test in mutant.tests:
            file, _, name = test.partition("::")
            assert f"def {name}" in (ROOT / file).read_text(), test


def test_forty_mutants_of_one_name_each():
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 40


@pytest.fixture
def project(tmp_path):
    """A module that decides by a limit, and tests of it."""
    root = tmp_path / "project"
    root.mkdir()
    (root / "decision.py").write_text("LIMIT = 3\n")
    (root / "test_limit.py").write_text(TEST.format(name="limit", what="LIMIT == 3"))
    (root / "test_sign.py").write_text(TEST.format(name="sign", what="LIMIT > 0"))
    (root / "test_fails.py").write_text(TEST.format(name="fails", what="LIMIT == 4"))
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    return root


def mutant(old: str = "3", test: str = "test_limit.py") -> Mutant:
    return Mutant("one", "decision.py", old, "4", (test,), "it is 3")


@pytest.mark.slow
def test_a_mutant_is_killed_survives_or_cannot_be_planted(project):
    with MutatedTree.of(project) as tree:
        tree.check(["test_limit.py", "test_sign.py"])
        assert tree.killer(mutant(), 1) == "test_limit.py::test_limit"
        assert tree.killer(mutant(test="test_sign.py"), 2) == ""
        with pytest.raises(ValueError, match="'5' stands 0 times"):
            tree.killer(mutant(old="5"), 3)
        with pytest.raises(TestsError, match="test_fails fails without any mutant"):
            tree.check(["test_fails.py"])
        with pytest.raises(TestsError, match="pytest ended with 4"):
            tree.check(["test_nowhere.py"])
        tree.check(["test_limit.py"])
    assert not tree.folder.exists()
    assert (project / "decision.py").read_text() == "LIMIT = 3\n"


def test_the_command_names_its_mutants_and_refuses_others():
    def said(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, ROOT / "tests" / "mutants", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    listed = said("--list", "wire-*", "device-late-twice").stdout.splitlines()
    assert [line.partition(":")[0] for line in listed] == [
        "device-late-twice",
        "wire-lost-step",
        "wire-cut-short",
    ]
    assert "MAX_DEVICE_LATE=0.02" in said("--list", "--thresholds").stdout
    refused = said("nothing")
    assert refused.returncode == 2
    assert "no mutant is called nothing" in refused.stderr

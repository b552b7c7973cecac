"""The parts of `make deep` are all there is, once, and go on where they were interrupted."""

import sys
from pathlib import Path

import deep
import pytest

ROOT = Path(__file__).parents[1]


def test_each_test_file_is_in_one_part():
    commands = [each for part in deep.parts().values() for each in part if "pytest" in each]

    def runs(command: list[str], path: Path) -> bool:
        taken = [ROOT / word for word in command if f"{word}/".startswith("tests/")]
        left = [ROOT / word.removeprefix("--ignore=") for word in command if "--ignore=" in word]
        return any(map(path.is_relative_to, taken)) and not any(map(path.is_relative_to, left))

    files = sorted((ROOT / "tests").rglob("test_*.py"))
    with_tests = [path for path in files if "\ndef test_" in path.read_text()]
    assert [path for path in with_tests if sum(runs(each, path) for each in commands) != 1] == []


def test_a_part_that_passed_on_this_tree_is_not_run_again(monkeypatch, tmp_path, capfd):
    def run(*parts: str) -> tuple[int, list[str]]:
        monkeypatch.setattr(sys, "argv", ["deep.py", *parts])
        status = deep.main()
        return status, capfd.readouterr().out.splitlines()

    good, bad = ["echo", "good"], ["sh", "-c", "echo bad; exit 1"]
    monkeypatch.setattr(deep, "DONE", tmp_path)
    monkeypatch.setattr(deep, "parts", lambda: {"fails": [bad, good], "passes": [good]})
    status, said = run()
    assert status == 1
    assert [line for line in said if line in ("good", "bad")] == ["bad", "good", "good"]
    assert said[-1] == "fails failed; again: make deep PARTS=fails"

    monkeypatch.setattr(deep, "parts", lambda: {"fails": [good], "passes": [bad]})
    status, said = run()
    assert status == 0, "what passed is not run again"
    assert said.count("good") == 1
    assert run("passes")[0] == 1, "but where it is named"

    monkeypatch.setattr(deep, "tree_of", lambda root: "another")
    assert run()[0] == 1, "and on another tree"


def test_the_tree_is_what_lies_there_whether_git_knows_it_or_not(tmp_path):
    deep.git(tmp_path, "init", "--quiet")
    (tmp_path / "a").write_text("1")
    first = deep.tree_of(tmp_path)
    assert deep.tree_of(tmp_path) == first
    (tmp_path / "b").write_text("2")
    second = deep.tree_of(tmp_path)
    (tmp_path / "b").write_text("3")
    assert len({first, second, deep.tree_of(tmp_path)}) == 3


def test_a_part_that_is_not_there_is_said(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["deep.py", "all"])
    with pytest.raises(SystemExit):
        deep.main()
    assert "no part all; there are vllm, kernels" in capsys.readouterr().err

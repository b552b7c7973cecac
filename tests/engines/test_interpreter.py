"""What `python` may be: a path, a version, and a sentence where there is none."""

import sys

import pytest

from engines.interpreter import interpreter

OWN = "{}.{}".format(*sys.version_info)


def test_nothing_and_its_own_version_are_this_interpreter():
    assert interpreter("") == interpreter(OWN) == sys.executable


def test_a_path_is_what_it_is():
    assert interpreter(sys.executable) == sys.executable


def test_a_version_is_the_environment_that_is_kept_of_it(tmp_path, monkeypatch):
    monkeypatch.setenv("GCBENCH_CACHE", str(tmp_path))
    with pytest.raises(ValueError, match=r"--axis python=3\.99: no environment of this version"):
        interpreter("3.99")
    kept = tmp_path / "ci" / "python-3.99" / "bin" / "python"
    kept.parent.mkdir(parents=True)
    kept.touch()
    assert interpreter("3.99") == str(kept)


def test_what_is_not_there_is_a_sentence(tmp_path):
    with pytest.raises(ValueError, match="no such program; give an interpreter's path"):
        interpreter(str(tmp_path / "python"))

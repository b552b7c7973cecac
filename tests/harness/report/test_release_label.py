"""What reports call a release, which may be a checkout of vLLM."""

from pathlib import Path

import pytest
from scratch_repository import Repository, leave_git_alone

from engines.vllm.cache import ReleaseError
from harness.report.release_label import release_label


@pytest.fixture(autouse=True)
def _alone(monkeypatch, tmp_path):
    leave_git_alone(monkeypatch, tmp_path)


@pytest.fixture
def checkout(tmp_path) -> Repository:
    made = Repository(tmp_path / "my-vllm")
    write_vllm(made.root)
    made.commit("first")
    return made


def write_vllm(folder: Path, text: str = "") -> None:
    (folder / "vllm").mkdir(parents=True, exist_ok=True)
    (folder / "vllm" / "__init__.py").write_text(text)


def test_a_version_is_itself_and_nothing_else_is():
    assert release_label("v0.11") == "0.11.0"
    with pytest.raises(ReleaseError, match="neither a release of vLLM"):
        release_label("newest")


def test_a_checkout_is_called_what_git_calls_it(checkout):
    checkout.git("tag", "v0.11.2")
    name = str(checkout.root)
    assert release_label(name) == "v0.11.2"
    (checkout.root / "notes").touch()
    assert release_label(name) == "v0.11.2", "a new file changes nothing of a version"
    write_vllm(checkout.root, "changed = True")
    assert release_label(name) == "v0.11.2-dirty"
    checkout.commit("second")
    assert release_label(name).startswith("v0.11.2-1-g")


def test_an_untagged_checkout_is_called_by_its_commit(checkout, tmp_path, monkeypatch):
    head = checkout.git("rev-parse", "HEAD")
    monkeypatch.setenv("GIT_DIR", str(tmp_path))  # as in a hook of another repository
    label = release_label(str(checkout.root))
    assert len(label) >= 7
    assert head.startswith(label)


def test_a_checkout_around_it_does_not_name_it(tmp_path):
    around = Repository(tmp_path / "around")
    write_vllm(around.root / "my-vllm")
    around.commit("first")
    assert release_label(str(around.root / "my-vllm")) == "my-vllm"


def test_without_a_commit_it_is_called_by_its_folder(tmp_path):
    empty = Repository(tmp_path / "my-vllm")
    write_vllm(empty.root)
    assert release_label(str(empty.root)) == "my-vllm"

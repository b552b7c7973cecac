"""The releases that an engine has itself, and the tags that stand for those of another."""

from pathlib import Path

import pytest
from scratch_repository import Repository, leave_git_alone

from engines.prepared.cache import ReleaseError
from engines.registry import ENGINES
from harness.machine.git import described
from harness.verbs.release_sources import Tags, engine_named, release_source, wanted_releases


@pytest.fixture(autouse=True)
def _alone(monkeypatch, tmp_path):
    leave_git_alone(monkeypatch, tmp_path)
    monkeypatch.setenv("GCBENCH_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def checkout(tmp_path) -> Repository:
    made = Repository(tmp_path / "my-vllm")
    write_package(made.root, "vllm")
    made.commit("first")
    return made


def write_package(folder: Path, name: str, text: str = "") -> None:
    (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / name / "__init__.py").write_text(text)


def test_a_version_is_checked_by_the_engine_that_has_it():
    source = release_source(ENGINES.load("vllm-hostpath"), Path())
    with pytest.raises(ReleaseError, match="neither a release of vLLM"):
        source.lay_out("newest", print)


def test_a_checkout_is_called_what_git_calls_it(checkout):
    checkout.git("tag", "v0.11.2")
    assert described(checkout.root) == "v0.11.2"
    (checkout.root / "notes").touch()
    assert described(checkout.root) == "v0.11.2", "a new file changes nothing of a version"
    write_package(checkout.root, "vllm", "changed = True")
    assert described(checkout.root) == "v0.11.2-dirty"
    checkout.commit("second")
    assert described(checkout.root).startswith("v0.11.2-1-g")


def test_an_untagged_checkout_is_called_by_its_commit(checkout, tmp_path, monkeypatch):
    head = checkout.git("rev-parse", "HEAD")
    monkeypatch.setenv("GIT_DIR", str(tmp_path))  # as in a hook of another repository
    label = described(checkout.root)
    assert len(label) >= 7
    assert head.startswith(label)


def test_a_checkout_around_it_or_one_without_a_commit_does_not_name_it(tmp_path):
    around = Repository(tmp_path / "around")
    write_package(around.root / "my-vllm", "vllm")
    around.commit("first")
    assert described(around.root / "my-vllm") == ""
    assert described(Repository(tmp_path / "empty").root) == ""


@pytest.fixture
def tagged(tmp_path) -> Tags:
    """A repository with src/toy in three of four tags, and one tag that is no version."""
    made = Repository(tmp_path / "toy")
    (made.root / "readme").touch()
    made.commit("before there was one")
    made.git("tag", "v0.1")
    for number, tag in enumerate(["v0.2", "v0.10", "v0.10.1"]):
        write_package(made.root / "src", "toy", f"number = {number}")
        made.commit(tag)
        made.git("tag", tag)
    made.git("tag", "nightly")
    return Tags(made.root, "src/toy")


def test_tags_that_are_versions_are_releases_and_any_commit_can_be_named(tagged):
    assert tagged.known() == ["v0.1", "v0.2", "v0.10", "v0.10.1"]
    assert tagged.usual() == "v0.10.1"
    assert wanted_releases(tagged, ["v0.2.."], last_patches=True) == ["v0.2", "v0.10.1"]
    assert wanted_releases(tagged, ["HEAD", "v0.2"], last_patches=False) == ["HEAD", "v0.2"]
    with pytest.raises(ValueError, match=r"^0\.11\.\.: .*toy has no tag of a version in this"):
        wanted_releases(tagged, ["0.11.."], last_patches=False)


def test_the_package_of_a_tag_is_laid_out_once(tagged):
    said: list[str] = []
    found = [tagged.lay_out(release, said.append) for release in ("v0.2", "HEAD~2", "v0.10")]
    texts = [(Path(each.root) / "toy" / "__init__.py").read_text() for each in found]
    assert texts == ["number = 0", "number = 0", "number = 1"]
    assert [each.label for each in found] == ["v0.2", "HEAD~2", "v0.10"]
    assert [each.release for each in found] == [each.root for each in found]
    assert said == ["laying out v0.2", "laying out v0.10"]
    with pytest.raises(ValueError, match=r"v0\.1 .* has no src/toy/"):
        tagged.lay_out("v0.1", said.append)
    left = [path.name for path in Path(found[0].root).parents[1].iterdir()]
    assert sorted(name[0] == "." for name in left) == [False, False], "nothing is half made"


def test_a_tree_is_taken_as_it_stands(tagged, tmp_path):
    tree = tmp_path / "tree"
    write_package(tree, "toy")
    assert tagged.lay_out(str(tree), print) == (str(tree),) * 3


def test_an_engine_is_named_by_itself_or_by_its_package():
    assert [engine_named(name) for name in ("vllm", "vllm-hostpath", "builtin")] == [
        "vllm-hostpath",
        "vllm-hostpath",
        "builtin",
    ]
    with pytest.raises(ValueError, match="did you mean vllm"):
        engine_named("vlm")

"""git reads, and nothing that a repository names is run; each trap is shown to be live."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hostile_repository import SUBJECTS, TRAPS, HostileRepository, run_control
from processes import overstepped
from scratch_repository import Repository, contents, leave_git_alone

from dashboards.content.commits import known_messages, remote_address
from harness.machine.describe import code_identity
from harness.machine.git import GitError, changed_files, described, git, reading
from harness.tracking.asv.checkout import rewritten
from harness.tracking.gate.trees import WORK_TREE, take_tree, tree_differences
from harness.tracking.nightly.commits import subject, wanted_commits


@pytest.fixture(scope="module")
def hostile(tmp_path_factory) -> HostileRepository:
    return HostileRepository(tmp_path_factory.mktemp("hostile"))


@pytest.fixture(scope="module")
def sprung_hostile(tmp_path_factory) -> HostileRepository:
    """One of its own: what plain git has started may outlive it."""
    return HostileRepository(tmp_path_factory.mktemp("sprung"))


@pytest.fixture(autouse=True)
def _alone(monkeypatch, tmp_path):
    leave_git_alone(monkeypatch, tmp_path)


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.name)
def test_plain_git_runs_the_trap(sprung_hostile, tmp_path, trap):
    run_control(trap, sprung_hostile.copy_to(tmp_path / "copy"))
    assert trap.name in sprung_hostile.sprung()


def read_for_the_dashboard(root: Path, scratch: Path) -> None:
    hashes = git(root, "rev-list", "HEAD").split()
    subjects = {message.subject for message in known_messages(root, hashes).values()}
    assert set(SUBJECTS) < subjects
    assert remote_address(root) == ""


def read_for_a_trial(root: Path, scratch: Path) -> None:
    path, commit = code_identity(root / "engines")
    assert path == str(root / "engines")
    assert commit.endswith("+dirty")


def read_for_the_gate(root: Path, scratch: Path) -> None:
    base, head, work_tree = (
        take_tree(root, commit, "engines", scratch / commit)
        for commit in ("HEAD~4", "HEAD", WORK_TREE)
    )
    assert contents(base.folder) == contents(head.folder)
    assert head.subject == SUBJECTS[-1]
    assert contents(head.folder)["engines/clean.py"] == "1\n"
    assert contents(work_tree.folder)["engines/clean.py"] == "2\n"
    assert len(tree_differences(root, base, head, "engines")) == 2
    assert work_tree.is_dirty


def read_for_a_night(root: Path, scratch: Path) -> None:
    (newest,) = wanted_commits(root, ["main"], "", set(), set())
    assert subject(root, newest) == SUBJECTS[-1]
    assert rewritten(root, ["main"], {newest, "0" * 40}) == {"0" * 40}
    assert len(wanted_commits(root, ["main"], "HEAD~3..HEAD", set(), set())) == 3


def read_for_releases(root: Path, scratch: Path) -> None:
    commit, _, dirty = described(root).partition("-")
    assert git(root, "rev-parse", "HEAD").startswith(commit)
    assert dirty == "dirty"


@pytest.mark.parametrize(
    "read",
    [
        read_for_the_dashboard,
        read_for_a_trial,
        read_for_the_gate,
        read_for_a_night,
        read_for_releases,
    ],
)
def test_no_reading_runs_a_trap(hostile, tmp_path, read):
    root = hostile.copy_to(tmp_path / "copy")
    read(root, tmp_path)
    assert hostile.sprung() == set()


@pytest.fixture
def repository(tmp_path) -> Repository:
    made = Repository(tmp_path / 'it\'s "one" \\ of many')
    made.commit("first", engines__a="1")
    return made


def test_names_mean_what_they_mean_to_the_user(repository, tmp_path):
    clone = tmp_path / "clone"
    repository.git("clone", "--quiet", str(repository.root), str(clone))
    first = repository.git("rev-parse", "HEAD")
    there = Repository(clone)
    there.commit("second")
    assert git(clone, "rev-parse", "main@{upstream}") == first
    assert git(clone, "rev-parse", "HEAD@{1}") == first
    there.git("config", "url.https://github.com/.insteadOf", "gh:")
    there.git("remote", "set-url", "origin", "gh:a/b")
    assert remote_address(clone) == "https://github.com/a/b/commit/"


@pytest.mark.parametrize("text", ['a"]\n[core]\n\tb = 1', "\\", '"', " # ; \t", "[a]", "ü\udcff"])
def test_settings_are_taken_over_as_they_are(repository, text):
    repository.git("config", "remote.origin.url", text)
    name = text.replace("\n", "")
    repository.git("config", f"branch.{name}.merge", "refs/heads/main")
    assert git(repository.root, "remote", "get-url", "origin") == text
    kept = git(repository.root, "config", "--get", f"branch.{name}.merge")
    assert kept == "refs/heads/main"


def test_files_that_the_user_ignores_are_no_changes(repository, tmp_path, monkeypatch):
    ignored = tmp_path / 'ignored "here"'
    ignored.write_text("*.notes\n")
    settings = tmp_path / "settings"
    repository.git("config", "--file", str(settings), "core.excludesFile", str(ignored))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    (repository.root / "my.notes").touch()
    assert changed_files(repository.root) == []
    (repository.root / "new.py").touch()
    assert changed_files(repository.root) == ["new.py"]
    assert changed_files(repository.root, untracked=False) == []


@pytest.mark.parametrize("options", [("--object-format=sha256",), ("--shared=group",)])
def test_repositories_of_other_kinds(tmp_path, options):
    folder = tmp_path / "other"
    Repository(tmp_path / "any").git("init", "--quiet", *options, str(folder))
    other = Repository(folder)
    commit = other.commit("first", engines__a="1")
    assert git(folder / "engines", "rev-parse", "HEAD") == commit
    assert code_identity(folder) == (str(folder), commit)


def test_another_work_tree_of_a_repository(repository, tmp_path):
    other = tmp_path / "other"
    repository.git("worktree", "add", "--quiet", "-b", "side", str(other))
    commit = Repository(other).commit("second", engines__a="2")
    (other / "engines" / "a.py").write_text("3")
    assert git(other, "rev-parse", "HEAD", "main").split() == [
        commit,
        repository.git("rev-parse", "HEAD"),
    ]
    assert changed_files(other / "engines", ".") == ["engines/a.py"]
    assert changed_files(repository.root) == []


def test_a_repository_without_a_work_tree(repository, tmp_path):
    bare = tmp_path / "bare.git"
    repository.git("clone", "--quiet", "--bare", str(repository.root), str(bare))
    for folder in (bare, repository.root / ".git"):
        assert git(folder, "log", "--format=%s") == "first"
        with pytest.raises(GitError, match="must be run in a work tree"):
            changed_files(folder)


def test_what_a_partial_clone_lacks_is_not_fetched(repository, tmp_path):
    repository.git("config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "clone"
    options = ("--quiet", "--no-checkout", "--filter=blob:none")
    repository.git("clone", *options, f"file://{repository.root}", str(clone))
    assert git(clone, "log", "--format=%s") == "first"
    with pytest.raises(GitError, match=r"a partial clone, .* clone it without --filter"):
        git(clone, "cat-file", "-p", "HEAD:engines/a.py")


def test_a_submodule_counts_by_the_commit_that_is_checked_out(repository):
    inner = Repository(repository.root / "inner")
    inner.commit("inner", inner="1")
    repository.commit("with a submodule")
    inner.write(inner="2")
    assert changed_files(repository.root) == []
    inner.commit("another", inner="3")
    assert changed_files(repository.root) == ["inner"]


def test_nothing_is_left_behind(repository, tmp_path, monkeypatch):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    before = repository.state()
    git(repository.root, "status")
    with pytest.raises(GitError, match="git show failed"):
        git(repository.root, "show", "nothing")
    assert repository.state() == before
    assert list(scratch.iterdir()) == []
    scratch.rmdir()
    with pytest.raises(GitError, match=r"cannot be run here: no temporary folder .* No such file"):
        git(repository.root, "status")


def test_a_program_that_the_users_own_settings_name_is_not_run(tmp_path, monkeypatch):
    """Plain git runs it."""
    repository, ran, home = Repository(tmp_path / "repo"), tmp_path / "ran", tmp_path / "home"
    repository.commit(a="1")
    repository.write(a="2")
    home.mkdir()
    (home / ".gitconfig").write_text(f'[core]\n\tfsmonitor = "touch {ran}; false"\n')
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("GIT_CONFIG_GLOBAL")
    assert changed_files(repository.root) == ["a.py"]
    assert not ran.exists()
    subprocess.run(["git", "-C", str(repository.root), "status"], check=True, capture_output=True)
    assert ran.exists()


@pytest.mark.slow
@pytest.mark.parametrize("hangs", [1, 2])
def test_a_git_that_hangs_is_asked_once_more(repository, tmp_path, monkeypatch, hangs):
    """With a program of that name before it on the path, which answers nothing so many times."""
    folder, left = tmp_path / "bin", tmp_path / "left"
    folder.mkdir()
    own = shutil.which("git")
    (folder / "git").write_text(
        f"#!/bin/sh\n[ ! -s {left} ] || {{ sed -i 1d {left}; exec tail -f /dev/null; }}\n"
        f'exec {own} "$@"\n'
    )
    (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    commit = repository.git("rev-parse", "HEAD").strip()

    def said(seconds):
        with reading(repository.root, patience_seconds=seconds) as ask:
            left.write_text("hang\n" * hangs)
            try:
                return ask("rev-parse", "HEAD").strip()
            except GitError as error:
                return str(error)

    seconds, found = overstepped(said, lambda found: hangs == 2 or found == commit)
    if hangs == 1:
        assert found == commit
    else:
        assert found.startswith(f"git rev-parse did not answer within {seconds:.0f} s in ")

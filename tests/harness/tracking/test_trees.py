"""Two commits on disk: real repositories, real mistakes, and nothing touched that is the user's."""

import json
import os
import subprocess
from pathlib import Path

import msgspec
import pytest
from scratch_repository import Repository, contents, leave_git_alone

from harness.files import StoreError
from harness.machine.git import GitError, changed_files, git
from harness.tracking.gate.trees import (
    WORK_TREE,
    differing_outside,
    find_commit,
    take_tree,
    tree_differences,
)

PACKAGE = "engines"


@pytest.fixture(autouse=True)
def _alone(monkeypatch, tmp_path):
    leave_git_alone(monkeypatch, tmp_path)


@pytest.fixture
def repository(tmp_path):
    """Two commits, the second with other text in one of two files."""
    made = Repository(tmp_path / "repo")
    made.commit("first", engines__a="1", engines__deep__b="1", other="1")
    made.git("tag", "--annotate", "v1", "--message", "a release")
    made.commit("second", engines__a="2")
    return made


@pytest.fixture
def untouched(repository):
    """Fail a test that leaves the repository other than it was before `now` was called."""
    before = []

    def now() -> None:
        before.append(repository.state())

    yield now
    assert repository.state() == before[0]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("main", "2"),
        ("HEAD", "2"),
        ("HEAD~1", "1"),
        ("v1", "1"),
        ("v1^{commit}", "1"),
        ("HEAD^{/first}", "1"),
        ("SHA", "1"),
        ("SHA[:7]", "1"),
    ],
)
def test_a_commit_by_any_name(repository, untouched, tmp_path, name, content):
    first = repository.git("rev-parse", "HEAD~1")
    untouched()
    name = name.replace("SHA[:7]", first[:7]).replace("SHA", first)
    tree = take_tree(repository.root, name, PACKAGE, tmp_path / "out" / "base")
    assert contents(tree.folder) == {"engines/a.py": content, "engines/deep/b.py": "1"}
    assert tree.sha == repository.git("rev-parse", "HEAD" if content == "2" else "HEAD~1")
    assert tree.subject == ("second" if content == "2" else "first")
    short = tree.sha[:10]
    assert tree.label == (short if tree.sha.startswith(name) else f"{name} ({short})")
    assert not tree.is_dirty


def test_from_a_folder_below_the_top_and_into_a_relative_one(repository, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tree = take_tree(repository.root / "engines" / "deep", "main", PACKAGE, Path("here"))
    assert tree.folder == str(tmp_path / "here")
    assert contents(tree.folder)["engines/a.py"] == "2"


@pytest.mark.parametrize("commit", ["nowhere", "0" * 40, "--all", "main:engines", "HEAD~7", "a b"])
def test_an_unknown_commit_is_named(repository, untouched, tmp_path, commit):
    untouched()
    with pytest.raises(ValueError, match=r"has no commit .*; git log --all --oneline lists"):
        take_tree(repository.root, commit, PACKAGE, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("commit", ["", " "])
def test_the_empty_name_is_no_work_tree(repository, commit):
    with pytest.raises(ValueError, match="the empty name: is a variable of the shell not set"):
        find_commit(repository.root, commit, PACKAGE)


def test_a_repository_without_a_commit(tmp_path):
    empty = Repository(tmp_path / "empty")
    empty.write(engines__a="1")
    with pytest.raises(ValueError, match="has no commit 'HEAD'"):
        find_commit(empty.root, WORK_TREE, PACKAGE)


def test_a_shallow_clone_is_told_to_fetch_more(repository, tmp_path):
    clone = tmp_path / "clone"
    repository.git("clone", "--quiet", "--depth", "1", f"file://{repository.root}", str(clone))
    assert find_commit(clone, "main", PACKAGE) == repository.git("rev-parse", "HEAD")
    lacked = repository.git("rev-parse", "HEAD~1")
    for commit in (lacked, "HEAD~1"):
        with pytest.raises(ValueError, match=r"shallow clone .*git fetch --unshallow.*fetch-depth"):
            find_commit(clone, commit, PACKAGE)
    subprocess.run(["git", "-C", str(clone), "fetch", "--quiet", "--unshallow"], check=True)
    assert find_commit(clone, "HEAD~1", PACKAGE) == lacked


def test_what_is_no_checkout(repository, tmp_path, monkeypatch):
    def refusal(repo: Path) -> str:
        with pytest.raises(ValueError, match="--repo") as refused:
            find_commit(repo, "main", PACKAGE)
        return str(refused.value)

    (tmp_path / "plain").mkdir()
    assert refusal(tmp_path / "nowhere").endswith("there is no such folder")
    assert "no git repository; give the top folder" in refusal(tmp_path / "plain")
    bare = tmp_path / "bare.git"
    repository.git("clone", "--quiet", "--bare", str(repository.root), str(bare))
    assert "no work tree" in refusal(bare)
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")  # git's own switch for its tests
    assert f"safe.directory {repository.root}" in refusal(repository.root)
    monkeypatch.delenv("GIT_TEST_ASSUME_DIFFERENT_OWNER")
    (repository.root / ".git" / "config").write_text("[core\n")
    with pytest.raises(GitError, match="bad config"):
        find_commit(repository.root, "main", PACKAGE)


def test_git_missing_or_not_to_be_run(repository, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ValueError, match=r"^git is not installed here$"):
        find_commit(repository.root, "main", PACKAGE)
    (tmp_path / "git").mkdir()
    with pytest.raises(ValueError, match=r"^git (is not installed|cannot be run) here"):
        find_commit(repository.root, "main", PACKAGE)


def test_a_repository_without_the_package(repository, tmp_path):
    with pytest.raises(ValueError, match=r"main \(\w{10}\) in .*repo has no vllm/: give by --repo"):
        take_tree(repository.root, "main", "vllm", tmp_path / "out")
    with pytest.raises(ValueError, match="repo has no vllm/: give by --repo"):
        take_tree(repository.root, WORK_TREE, "vllm", tmp_path / "out")
    file = repository.commit("a file of that name", vllm="1")
    repository.git("mv", "vllm.py", "vllm")
    file = repository.commit("now it is one")
    with pytest.raises(ValueError, match=rf"^{file[:10]} in .* has no vllm/"):
        find_commit(repository.root, file, "vllm")


def test_the_work_tree_as_it_stands(repository, untouched, tmp_path):
    (repository.root / ".gitignore").write_text("*.log\n__pycache__/\n")
    repository.commit("ignore", engines__gone="1")
    repository.write(engines__a="3", engines__new="3")
    (repository.root / "engines" / "gone.py").unlink()
    (repository.root / "engines" / "noise.log").write_text("3")
    (repository.root / "engines" / "__pycache__").mkdir()
    (repository.root / "engines" / "__pycache__" / "a.pyc").write_text("3")
    repository.write(engines__staged="3")
    repository.git("add", "engines/staged.py")
    untouched()
    assert sorted(changed_files(repository.root, PACKAGE)) == [
        f"engines/{name}.py" for name in ("a", "gone", "new", "staged")
    ]
    tree = take_tree(repository.root, WORK_TREE, PACKAGE, tmp_path / "out")
    wanted = {"a": "3", "deep/b": "1", "new": "3", "staged": "3"}
    assert contents(tree.folder) == {f"engines/{name}.py": text for name, text in wanted.items()}
    head = repository.git("rev-parse", "HEAD")
    assert (tree.is_dirty, tree.commit, tree.sha) == (True, head, f"{head}+dirty")
    assert tree.label == f"work tree ({head[:10]}+changes)"
    base = take_tree(repository.root, "HEAD", PACKAGE, tmp_path / "base")
    assert tree_differences(repository.root, base, tree, PACKAGE) == []


def test_a_clean_work_tree_is_its_commit(repository, tmp_path):
    (repository.root / "notes.txt").write_text("outside")
    base, head = (
        take_tree(repository.root, commit, PACKAGE, tmp_path / commit)
        for commit in ("main", WORK_TREE)
    )
    assert contents(head.folder) == contents(base.folder)
    assert (head.sha, head.label) == (base.sha, f"work tree ({base.sha[:10]})")
    (said,) = tree_differences(repository.root, base, head, PACKAGE)
    assert said.startswith("The two do not differ in engines/: ")
    assert differing_outside(repository.root, base, head, PACKAGE) == ["notes.txt"]


def test_what_lies_between_two_commits(repository, untouched, tmp_path):
    for number in range(8):
        repository.write(**{f"top{number}": "3"})
    repository.commit("outside alone", docs__page="3")
    repository.write(engines__a="left")
    untouched()
    first, second, third = (
        take_tree(repository.root, commit, PACKAGE, tmp_path / commit)
        for commit in ("v1", "HEAD~1", "HEAD")
    )
    left = "Uncommitted changes in 1 file of engines/ belong to neither commit; leave HEAD out"
    assert [
        said.startswith(left) for said in tree_differences(repository.root, first, second, PACKAGE)
    ] == [True]
    nothing, also_left = tree_differences(repository.root, second, third, PACKAGE)
    assert nothing.startswith("The two do not differ in engines/")
    outside = differing_outside(repository.root, second, third, PACKAGE)
    assert outside == ["docs", *(f"top{number}.py" for number in range(8))]
    assert also_left.startswith(left)
    (same, _) = tree_differences(repository.root, third, third, PACKAGE)
    assert same == nothing


AWKWARD = (
    "with space",
    "grüße",
    'quo"te',
    "it's",
    "back\\slash",
    "-dash",
    "tab\tbed",
    " lead",
    "a->b",
)


def test_awkward_names_are_names(repository, untouched, tmp_path):
    repository.commit("names", **{f"engines__{name}": "1" for name in AWKWARD})
    repository.write(**{f"engines__{name}": "2" for name in AWKWARD})
    untouched()
    paths = {f"engines/{name}.py" for name in AWKWARD}
    assert set(changed_files(repository.root, PACKAGE)) == paths
    base = take_tree(repository.root, "HEAD~1", PACKAGE, tmp_path / "base")
    middle = take_tree(repository.root, "HEAD", PACKAGE, tmp_path / "middle")
    head = take_tree(repository.root, WORK_TREE, PACKAGE, tmp_path / "head folder")
    assert contents(middle.folder).keys() - contents(base.folder).keys() == paths
    assert {path for path, text in contents(head.folder).items() if text == "2"} >= paths
    (left,) = tree_differences(repository.root, base, middle, PACKAGE)
    assert f"in {len(AWKWARD)} files of engines/" in left


def test_a_file_that_was_renamed_is_two_changes(repository, tmp_path):
    repository.git("mv", "engines/deep/b.py", "moved.py")
    assert sorted(changed_files(repository.root)) == ["engines/deep/b.py", "moved.py"]
    assert changed_files(repository.root, PACKAGE) == ["engines/deep/b.py"]
    repository.commit("move it out")
    base, head = (take_tree(repository.root, c, PACKAGE, tmp_path / c) for c in ("HEAD~1", "HEAD"))
    assert tree_differences(repository.root, base, head, PACKAGE) == []
    assert differing_outside(repository.root, base, head, PACKAGE) == ["moved.py"]


def test_what_lies_beside_a_package_in_its_folder_is_named_by_its_own(repository, tmp_path):
    repository.commit("one", src__engines__a="1", src__help__h="1", src__entry="1", top="1")
    repository.commit("two", src__engines__a="2", src__help__h="2", src__entry="2", top="2")
    base, head = (
        take_tree(repository.root, c, "src/engines", tmp_path / c) for c in ("HEAD~1", "HEAD")
    )
    outside = differing_outside(repository.root, base, head, "src/engines")
    assert outside == ["src/entry.py", "src/help", "top.py"]


def test_modes_links_and_line_ends(repository, tmp_path):
    package = repository.root / "engines"
    (package / "run.py").write_text("1")
    (package / "run.py").chmod(0o755)
    (package / "link.py").symlink_to("a.py")
    (package / "deep_link").symlink_to("deep")
    (package / "dangling.py").symlink_to("../nowhere.py")
    (package / "dos.py").write_bytes(b"x = 1\ny = 2\n")
    (repository.root / ".gitattributes").write_text("dos.py text eol=crlf\n")
    repository.commit("all kinds")
    (package / "dos.py").unlink()
    repository.git("checkout", "--", "engines/dos.py")
    before = repository.state()
    trees = [
        take_tree(repository.root, commit, PACKAGE, tmp_path / f"out {commit}")
        for commit in ("HEAD", WORK_TREE)
    ]
    assert repository.state() == before
    for tree in trees:
        laid_out = contents(tree.folder)
        assert laid_out["engines/link.py"] == "-> a.py"
        assert laid_out["engines/deep_link"] == "-> deep"
        assert laid_out["engines/dangling.py"] == "-> ../nowhere.py"
        out = Path(tree.folder, "engines")
        assert os.access(out / "run.py", os.X_OK)
        assert out.joinpath("a.py").stat().st_mode & 0o111 == 0
        assert (out / "dos.py").read_bytes() == b"x = 1\r\ny = 2\r\n"
    assert contents(trees[0].folder) == contents(trees[1].folder)


ALLOWED = ("-c", "protocol.file.allow=always")


@pytest.fixture
def with_submodule(repository, tmp_path):
    """engines/sub at two commits of its own, with one more in it that has a trap for git."""
    inner, outer = Repository(tmp_path / "inner"), Repository(tmp_path / "outer")
    inner.commit("inner", deep="1")
    outer.git(*ALLOWED, "submodule", "--quiet", "add", str(inner.root), "inner")
    outer.commit("one", s="1")
    repository.git(*ALLOWED, "submodule", "--quiet", "add", str(outer.root), "engines/sub")
    repository.git(*ALLOWED, "submodule", "--quiet", "update", "--init", "--recursive")
    repository.commit("with a submodule")
    sub = Repository(repository.root / "engines" / "sub")
    outer.commit("two", s="2")
    sub.git(*ALLOWED, "pull", "--quiet", "origin", "main")
    repository.commit("its next commit")
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch '{tmp_path}/sprung'\n")
    trap.chmod(0o755)
    sub.git("config", "core.fsmonitor", str(trap))
    yield repository
    assert not (tmp_path / "sprung").exists()


def test_submodules_are_laid_out_as_each_commit_has_them(with_submodule, tmp_path):
    (with_submodule.root / "engines" / "sub" / "s.py").write_text("3")
    (with_submodule.root / "engines" / "sub" / "new.py").write_text("4")
    trees = {
        commit: take_tree(with_submodule.root, commit, PACKAGE, tmp_path / f"out {commit}")
        for commit in ("HEAD~1", "HEAD", WORK_TREE)
    }
    for tree, s in zip(trees.values(), "123", strict=True):
        laid_out = contents(tree.folder)
        assert laid_out["engines/sub/s.py"] == s
        assert laid_out["engines/sub/inner/deep.py"] == "1"
        assert ("engines/sub/new.py" in laid_out) == (tree.asked == WORK_TREE)
        assert not any(path.endswith((".git", ".index")) for path in laid_out)
    assert len({tree.package_sha for tree in trees.values()}) == 3
    base, head = trees["HEAD~1"], trees["HEAD"]
    assert tree_differences(with_submodule.root, base, head, PACKAGE) == []


def test_submodules_that_are_not_there_are_named(with_submodule, tmp_path):
    clone = Repository(tmp_path / "clone")
    clone.git("pull", "--quiet", str(with_submodule.root), "main")
    for folder, lacking in ((with_submodule.root, []), (clone.root, ["engines/sub"])):
        trees = [
            take_tree(folder, commit, PACKAGE, tmp_path / f"{folder.name} {commit}")
            for commit in ("HEAD~1", "HEAD", WORK_TREE)
        ]
        assert [tree.lacking for tree in trees] == [lacking] * 3
        said = tree_differences(folder, *trees[:2], PACKAGE)
        assert [("not checked out: engines/sub; git submodule" in each) for each in said] == [
            True
        ] * len(lacking)
    clone.git(*ALLOWED, "submodule", "--quiet", "update", "--init")
    whole = take_tree(clone.root, "HEAD", PACKAGE, tmp_path / "half")
    assert whole.lacking == ["engines/sub/inner"]


def test_a_merge_that_has_not_been_settled(repository, tmp_path):
    repository.git("checkout", "--quiet", "-b", "side", "HEAD~1")
    repository.commit("other text", engines__a="3")
    with pytest.raises(subprocess.CalledProcessError):
        repository.git("merge", "main")
    tree = take_tree(repository.root, WORK_TREE, PACKAGE, tmp_path / "out")
    assert tree.is_dirty
    assert "<<<<<<<" in contents(tree.folder)["engines/a.py"]


def test_inside_another_repositorys_hook(repository, untouched, tmp_path):
    """As a hook would call it: git's variables point at the hook's repository."""
    hooked = Repository(tmp_path / "hooked")
    hooked.commit("before")
    script = (
        "import json, sys\nfrom pathlib import Path\n"
        "from harness.tracking.gate.trees import take_tree, tree_differences\n"
        "repo, out = map(Path, sys.argv[1:])\n"
        "trees = [take_tree(repo, c, 'engines', out / c) for c in ('HEAD~1', 'HEAD')]\n"
        "print(json.dumps([t.sha for t in trees] + tree_differences(repo, *trees, 'engines')))\n"
    )
    hook = hooked.root / ".git" / "hooks" / "pre-commit"
    root, python = Path(__file__).parents[3], Path(os.sys.executable)
    said = tmp_path / "said.json"
    hook.write_text(
        f"#!/bin/sh\nenv | grep -q GIT_INDEX_FILE || exit 9\nPYTHONPATH='{root}' exec '{python}' "
        f"-c \"{script}\" '{repository.root}' '{tmp_path / 'out'}' > '{said}'\n"
    )
    hook.chmod(0o755)
    untouched()
    hooked.commit("from within a hook", added="1")
    assert json.loads(said.read_text()) == [
        repository.git("rev-parse", commit) for commit in ("HEAD~1", "HEAD")
    ]
    assert contents(str(tmp_path / "out" / "HEAD"))["engines/a.py"] == "2"


@pytest.mark.parametrize(
    ("variable", "path"),
    [
        ("GIT_DIR", ".git"),
        ("GIT_WORK_TREE", "."),
        ("GIT_INDEX_FILE", ".git/index"),
        ("GIT_OBJECT_DIRECTORY", ".git/objects"),
        ("GIT_COMMON_DIR", ".git"),
    ],
)
def test_no_variable_leads_to_another_repository(repository, tmp_path, monkeypatch, variable, path):
    other = Repository(tmp_path / "other")
    other.commit("other", engines__a="other")
    wanted = repository.git("rev-parse", "HEAD")
    before = other.state(), repository.state()
    with monkeypatch.context() as patch:
        patch.setenv(variable, str(other.root / path))
        trees = [
            take_tree(repository.root, commit, PACKAGE, tmp_path / commit)
            for commit in ("HEAD", WORK_TREE)
        ]
    assert [tree.sha for tree in trees] == [wanted, wanted]
    assert contents(trees[0].folder) == contents(trees[1].folder)
    assert contents(trees[0].folder)["engines/a.py"] == "2"
    assert (other.state(), repository.state()) == before


def test_no_hook_of_the_repository_runs(repository, tmp_path):
    hook = repository.root / ".git" / "hooks" / "post-index-change"
    hook.write_text(f"#!/bin/sh\ntouch '{tmp_path / 'ran'}'\n")
    hook.chmod(0o755)
    repository.write(hooks="1")
    repository.git("add", "--all")
    (tmp_path / "ran").unlink()  # so it does run, where git is asked without our settings
    take_tree(repository.root, "HEAD", PACKAGE, tmp_path / "out")
    take_tree(repository.root, WORK_TREE, PACKAGE, tmp_path / "out2")
    assert not (tmp_path / "ran").exists()


def test_the_users_settings_change_nothing(repository, untouched, tmp_path):
    settings = {
        "core.splitIndex": "true",
        "status.showUntrackedFiles": "no",
        "core.quotePath": "true",
        "log.showSignature": "true",
        "i18n.logOutputEncoding": "latin1",
        "status.relativePaths": "true",
        "diff.noprefix": "true",
        "color.ui": "always",
        "core.abbrev": "4",
        "status.short": "true",
        "status.branch": "true",
    }
    repository.commit("grüße", engines__grüße="1")
    for name, value in settings.items():
        repository.git("config", name, value)
    repository.write(engines__neu="1")
    untouched()
    base = take_tree(repository.root, "HEAD~1", PACKAGE, tmp_path / "base")
    head = take_tree(repository.root, "HEAD", PACKAGE, tmp_path / "head")
    assert (head.subject, len(head.sha)) == ("grüße", 40)
    assert changed_files(repository.root, PACKAGE) == ["engines/neu.py"]
    (left,) = tree_differences(repository.root, base, head, PACKAGE)
    assert "1 file" in left


def test_a_subject_is_text_that_can_be_shown_and_stored(repository, tmp_path):
    message = tmp_path / "message"
    message.write_bytes("a \x1b[31m red \u202e word ".encode() + b"\xff end\n\nbody")
    repository.git("commit", "--quiet", "--allow-empty", "--file", str(message))
    tree = take_tree(repository.root, "HEAD", PACKAGE, tmp_path / "out")
    assert tree.subject.isprintable()
    assert tree.subject.startswith("a �[31m red � word ÿ end")
    assert msgspec.json.decode(msgspec.json.encode(tree), type=type(tree)) == tree


@pytest.mark.parametrize("commit", ["main", WORK_TREE])
def test_a_folder_that_cannot_be_written(repository, tmp_path, commit):
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file" / "out", Path("/proc/nowhere/out")):
        with pytest.raises(StoreError, match=r"cannot be written to .*; name .* with --output DIR"):
            take_tree(repository.root, commit, PACKAGE, folder)


@pytest.mark.parametrize("commit", ["main", WORK_TREE])
def test_what_an_earlier_run_left_is_neither_used_nor_removed(repository, tmp_path, commit):
    left = tmp_path / "out" / "engines" / "half.py"
    left.parent.mkdir(parents=True)
    left.write_text("half")
    with pytest.raises(StoreError, match="File exists"):
        take_tree(repository.root, commit, PACKAGE, tmp_path / "out")
    assert contents(str(tmp_path / "out")) == {"engines/half.py": "half"}


@pytest.mark.parametrize("commit", ["main", WORK_TREE])
def test_a_disk_that_is_full_half_way_leaves_nothing(
    repository, untouched, tmp_path, commit, no_file_above
):
    """The system lets no file grow beyond 4 KiB, in git too, as a full disk would not."""
    repository.commit("large", engines__large="#" * 100_000)
    untouched()
    named = pytest.raises(StoreError, match="name another place with --output DIR")
    with no_file_above(4096), named as refused:
        take_tree(repository.root, commit, PACKAGE, tmp_path / "out")
    assert "it said nothing" not in str(refused.value)
    assert not (tmp_path / "out").exists()


def test_a_clone_that_lacks_an_object_leaves_nothing(repository, tmp_path):
    blob = repository.git("rev-parse", "HEAD:engines/a.py")
    (repository.root / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(StoreError, match=r"engines/ of \w{10} cannot be laid out .*error: "):
        take_tree(repository.root, "HEAD", PACKAGE, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_git_says_the_reason_rather_than_the_advice(repository):
    with pytest.raises(GitError, match=r"^git checkout failed in .*: (error|fatal): pathspec 'no"):
        git(repository.root, "checkout", "nowhere")

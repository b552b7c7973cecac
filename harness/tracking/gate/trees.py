"""Two commits of a repository as trees on disk: the one package of each that is measured."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from pathlib import Path

import msgspec

from harness.files import writing
from harness.machine.git import Git, GitError, reading
from harness.tracking.gate.lay_out import check_out, copy_work_tree, names, submodules

WORK_TREE = "work tree"
"""In the place of a commit, whose name has no space: the files as they stand."""

_DIRTY = "+dirty"


class Tree(msgspec.Struct, frozen=True, kw_only=True):
    """A commit, and the folder that its package is imported from. ``asked`` is how it was named.

    ``package_sha``: a hash of the package's files, git's own unless the work tree has changes or
    there are submodules. ``lacking``: submodules whose files are not there.
    """

    asked: str
    sha: str
    subject: str
    folder: str
    package_sha: str = ""
    lacking: list[str] = []

    @property
    def label(self) -> str:
        """The commit in short, with the name it was asked by where that says more."""
        short = self.sha[:10] + ("+changes" if self.is_dirty else "")
        return short if self.commit.startswith(self.asked) else f"{self.asked} ({short})"

    @property
    def commit(self) -> str:
        """The commit, which uncommitted changes stand on."""
        return self.sha.removesuffix(_DIRTY)

    @property
    def is_dirty(self) -> bool:
        """Whether it is a work tree that differs from its commit."""
        return self.sha.endswith(_DIRTY)


def find_commit(repo: Path, commit: str, package: str) -> str:
    """The hash of a commit, or of what the `WORK_TREE` stands on, that holds ``package``.

    Raises ValueError where there is no such repository, commit or package in it.
    """
    with checkout(repo) as git:
        return commit_with(git, commit, package)


def take_tree(repo: Path, commit: str, package: str, folder: Path) -> Tree:
    """Lay out ``package`` of a commit, or of the `WORK_TREE`, under ``folder``, which is made.

    Raises ValueError as `find_commit`, StoreError where the folder cannot be made or filled; then
    nothing of it is left.
    """
    folder = folder.absolute()
    with checkout(repo) as git:
        sha = commit_with(git, commit, package)
        with _whole_or_not_at_all(folder):
            if commit == WORK_TREE:
                lacking = copy_work_tree(git, package, folder)
            else:
                lacking = check_out(git, sha, package, folder)
        is_dirty = commit == WORK_TREE and git.changed_files(package)
        return Tree(
            asked=commit,
            sha=sha + (_DIRTY if is_dirty else ""),
            subject=_subject(git, sha),
            folder=str((folder / package).parent),
            package_sha=_changed_sha(folder / package)
            if is_dirty or submodules(git, sha, package)
            else git("rev-parse", "--verify", f"{sha}:{package}"),
            lacking=lacking,
        )


def _changed_sha(package: Path) -> str:
    total = sha256()
    for path in sorted(package.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            name = path.relative_to(package).as_posix()
            total.update(f"{name}\0{len(content)}\0".encode() + content)
    return total.hexdigest()


def tree_differences(repo: Path, base: Tree, head: Tree, package: str) -> list[str]:
    """Sentences on what lies between two trees and is not measured, or is nothing at all."""
    is_work_tree = head.asked == WORK_TREE
    with checkout(repo) as git:
        changed = _changed(git, base, head)
        uncommitted = [] if is_work_tree else git.changed_files(package)
    sentences = []
    if not any(path.startswith(f"{package}/") for path in changed):
        sentences.append(
            f"The two do not differ in {package}/: what is found here is this machine's noise."
        )
    if lacking := sorted({*base.lacking, *head.lacking}):
        sentences.append(
            f"Measured without the files of submodules that are not checked out: "
            f"{', '.join(map(plain_text, lacking))}; git submodule update --init --recursive."
        )
    if uncommitted:
        files = "file" if len(uncommitted) == 1 else "files"
        sentences.append(
            f"Uncommitted changes in {len(uncommitted)} {files} of {package}/ belong to neither "
            "commit; leave HEAD out to measure the work tree as it stands."
        )
    return sentences


def differing_outside(repo: Path, base: Tree, head: Tree, package: str) -> list[str]:
    """Folders and files beside ``package``, in order, in which two trees differ."""
    with checkout(repo) as git:
        changed = _changed(git, base, head)
    paths = (path for path in changed if not path.startswith(f"{package}/"))
    return sorted({plain_text(_first_beside(path, package)) for path in paths})


def _changed(git: Git, base: Tree, head: Tree) -> list[str]:
    between = names(git("diff-tree", "-r", "-z", "--name-only", base.commit, head.commit))
    return between + (git.changed_files() if head.asked == WORK_TREE else [])


def _first_beside(path: str, package: str) -> str:
    """The least of a path's folders that has nothing of the package in it."""
    parts = path.split("/")
    at = next(n for n in range(1, len(parts) + 1) if parts[:n] != package.split("/")[:n])
    return "/".join(parts[:at])


def plain_text(text: str) -> str:
    """Without what moves a terminal's cursor, turns text around, or is no UTF-8."""
    return "".join(character if character.isprintable() else "�" for character in text)


@contextmanager
def checkout(repo: Path) -> Iterator[Git]:
    """git in the top folder of a checkout. Raises ValueError where there is none."""
    if not repo.is_dir():
        raise ValueError(f"--repo {repo}: there is no such folder")
    with ExitStack() as found:
        try:
            git = found.enter_context(reading(repo))
            root = Path(git("rev-parse", "--show-toplevel"))
        except GitError as error:
            what = next((sentence for said, sentence in _NO_CHECKOUT if said in str(error)), None)
            if what is None:
                raise
            raise ValueError(f"--repo {repo}: {what.format(repo=repo.resolve())}") from None
        yield git._replace(root=root)


_NO_CHECKOUT = (
    ("not a git repository", "no git repository; give the top folder of a checkout"),
    ("must be run in a work tree", "no work tree, only a repository; give a checkout of it"),
    (
        "dubious ownership",
        "the folder is another user's, and git will not read it; run git config --global --add "
        "safe.directory {repo}",
    ),
)


def commit_with(git: Git, commit: str, package: str) -> str:
    """As `find_commit`, in a checkout that is at hand."""
    sha = _resolve(git, "HEAD" if commit == WORK_TREE else commit)
    if commit == WORK_TREE:
        if not (git.root / package).is_dir():
            raise ValueError(f"{git.root} has no {package}/: {_wrong_repository(package)}")
    elif not _has_folder(git, sha, package):
        named = sha[:10] if sha.startswith(commit) else f"{commit} ({sha[:10]})"
        raise ValueError(f"{named} in {git.root} has no {package}/: {_wrong_repository(package)}")
    return sha


def _resolve(git: Git, commit: str) -> str:
    if not commit.strip():
        raise ValueError("a commit has the empty name: is a variable of the shell not set?")
    wanted = ("--verify", "--quiet", "--end-of-options", commit + "^{commit}")
    try:
        return git("rev-parse", *wanted)
    except GitError:
        if git("rev-parse", "--is-shallow-repository") == "true":
            raise ValueError(
                f"{git.root} is a shallow clone and does not have {commit}; run git fetch "
                "--unshallow there (in GitHub Actions: fetch-depth: 0)"
            ) from None
        raise ValueError(
            f"{git.root} has no commit {commit!r}; git log --all --oneline lists those it has"
        ) from None


def _has_folder(git: Git, sha: str, package: str) -> bool:
    listed = git("ls-tree", "-z", sha, "--", package)
    return " tree " in listed.split("\t", maxsplit=1)[0]


def _subject(git: Git, sha: str) -> str:
    wanted = ("--no-patch", "--no-show-signature", "--encoding=UTF-8", "--format=%s")
    return plain_text(git("show", *wanted, sha))


@contextmanager
def _whole_or_not_at_all(folder: Path) -> Iterator[None]:
    with writing(folder):
        folder.mkdir(parents=True)
    try:
        yield
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _wrong_repository(package: str) -> str:
    return f"give by --repo the checkout whose {package}/ is to be measured, or another --engine"

"""The files of a package as a commit or the work tree has them, with those of its submodules."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.files import StoreError, writing
from harness.machine.git import Git, GitError, reading


def submodules(git: Git, commit: str, package: str) -> dict[str, str]:
    """The commit of each submodule in a folder of a commit, by its path."""
    entries = names(git("ls-tree", "-r", "-z", commit, "--", package))
    links = [entry.split("\t", 1) for entry in entries if entry.startswith("160000 ")]
    return {path: kind.split()[2] for kind, path in links}


def check_out(git: Git, commit: str, package: str, folder: Path) -> list[str]:
    """Lay a commit's ``package`` out under ``folder``; the submodules that are not at hand.

    Nothing is fetched and no hook or filter is run. Raises StoreError.
    """
    index = {"GIT_INDEX_FILE": str(folder / ".index")}
    try:
        where = [f"--prefix={package}/", f"{commit}:{package}"] if package else [commit]
        git("read-tree", *where, environment=index)
        git("checkout-index", "--all", f"--prefix={folder}/", environment=index)
    except GitError as error:
        raise StoreError(
            f"{package or git.root}/ of {commit[:10]} cannot be laid out in {folder} ({error}); "
            "make room there, or name another place with --output DIR"
        ) from None
    (folder / ".index").unlink()
    lacking = []
    for path, linked in submodules(git, commit, package or ".").items():
        with _submodule(git.root / path) as inner:
            if inner is None or not _has(inner, linked):
                lacking.append(path)
            else:
                (folder / path).mkdir(parents=True, exist_ok=True)
                lacking += [
                    f"{path}/{each}" for each in check_out(inner, linked, "", folder / path)
                ]
    return lacking


def copy_work_tree(git: Git, package: str, folder: Path) -> list[str]:
    """Copy what git knows of the work tree's ``package``, or would; as `check_out`."""
    listed = git("ls-files", "-z", "--cached", "--others", "--exclude-standard", package)
    lacking = []
    for name in dict.fromkeys(names(listed)):  # one that is unmerged is listed thrice
        source, target = git.root / name, folder / name
        # Listed, and yet deleted, is a change like any other.
        if source.is_symlink() or source.is_file():
            with writing(folder):
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target, follow_symlinks=False)
        elif source.is_dir():
            with _submodule(source) as inner:
                inside = [""] if inner is None else copy_work_tree(inner, ".", target)
            lacking += [f"{name}/{each}".rstrip("/") for each in inside]
    return lacking


def names(listed: str) -> list[str]:
    """What git lists with ``-z``."""
    return [name for name in listed.split("\0") if name]


@contextmanager
def _submodule(folder: Path) -> Iterator[Git | None]:
    """git in a submodule; None where it is not checked out: there git would find what is around."""
    if (folder / ".git").exists():
        with reading(folder) as git:
            yield git
    else:
        yield None


def _has(git: Git, commit: str) -> bool:
    try:
        git("cat-file", "-e", f"{commit}^{{commit}}")
    except GitError:
        return False
    return True

"""Which commits a night has to measure."""

from collections.abc import Collection, Sequence
from pathlib import Path

from harness.machine.git import GitError, git


def wanted_commits(
    root: Path,
    branches: Sequence[str],
    revisions: str,
    measured: Collection[str],
    lost: Collection[str],
) -> list[str]:
    """What is new on the branches, first parents only, or all of ``revisions`` (git's notation).

    Oldest first. New is what came after the newest measured commit; where none of a branch was
    ever measured, its last commit. What is in ``measured`` is left out; ``lost`` are beginnings of
    hashes to measure once more. Raises ValueError for what git does not know and an empty range.
    """
    if revisions:
        spec = revisions if ".." in revisions or "^" in revisions else f"{revisions}^!"
        found = _listed(root, "rev-list", "--first-parent", "--reverse", spec)
        if not found:
            raise ValueError(f"--commits {revisions}: no commit; give a range as HEAD~5..HEAD")
    else:
        found = [each for branch in branches for each in _new(root, branch, measured, lost)]
    return [each for each in dict.fromkeys(found) if each not in measured]


def subject(root: Path, commit: str) -> str:
    """The first line of a commit's message, "" where there is no such commit."""
    try:
        words = git(root, "show", "--no-patch", "--no-show-signature", "--format=%s", commit)
    except GitError:
        return ""
    return words.encode(errors="surrogateescape").decode(errors="replace")  # JSON is UTF-8


def _new(root: Path, branch: str, measured: Collection[str], lost: Collection[str]) -> list[str]:
    line = _listed(root, "rev-list", "--first-parent", branch)
    newest = next((place for place, each in enumerate(line) if each in measured), 1)
    again = [each for each in line[newest:] if each.startswith(tuple(lost))]
    return [*again[::-1], *line[:newest][::-1]]


def _listed(root: Path, *arguments: str) -> list[str]:
    try:
        return git(root, *arguments, "--").split()
    except GitError as error:
        if git(root, "rev-parse", "--is-shallow-repository") == "true":
            raise ValueError(f"{error}; this is a shallow clone: git fetch --unshallow") from None
        raise ValueError(f"{error}; name commits that it has") from None

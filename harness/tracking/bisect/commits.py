"""The commits between two, of which one is looked for."""

from functools import cache
from pathlib import Path
from typing import NamedTuple

from harness.machine.git import Git, GitError, reading
from harness.tracking.bisect.result import Candidate
from harness.tracking.gate.trees import checkout, commit_with


class CommitHistory(NamedTuple):
    """GOOD, then the commits that change the package, oldest first; the last has BAD's package.

    ``num_commits``: after GOOD up to BAD, whatever they change.
    """

    root: Path
    candidates: list[Candidate]
    num_commits: int


def commits_between(repo: Path, good: str, bad: str, package: str) -> CommitHistory:
    """The commits from GOOD to BAD along first parents.

    Where GOOD is on a branch that was merged, the first commit after it is that merge. Raises
    ValueError where one of them is not there or GOOD is no ancestor of BAD.
    """
    with checkout(repo) as git:
        first, last = (commit_with(git, commit, package) for commit in (good, bad))
        _refuse_order(git, (good, first), (bad, last))
        between = f"{first}..{last}"
        after_good = set(git("rev-list", "--ancestry-path", between).split())
        line = [
            each
            for each in _log(git, "--first-parent", "--reverse", between)
            if each.id in after_good
        ]
        changing = set(git("rev-list", "--first-parent", between, "--", package).split())
        trees = [_tree_of(git, commit, package) for commit in (first, line[0].id)]
        (start,) = _log(git, "--no-walk", first)
    if trees[0] != trees[1]:
        changing.add(line[0].id)  # a merge whose first parent is not GOOD
    found = [each for each in line if each.id in changing]
    return CommitHistory(git.root, [start, *(found or line[-1:])], len(line))


@cache
def tree_of(root: Path, commit: str, package: str) -> str:
    """The hash of all files of a commit's package, "" where it has none; ``commit`` is a hash."""
    with reading(root) as git:
        return _tree_of(git, commit, package)


def _tree_of(git: Git, commit: str, package: str) -> str:
    try:
        return git("rev-parse", "--verify", "--quiet", f"{commit}:{package}")
    except GitError:
        return ""


def _refuse_order(git: Git, good: tuple[str, str], bad: tuple[str, str]) -> None:
    if good[1] == bad[1]:
        raise ValueError(f"GOOD {good[0]} and BAD {bad[0]} are the same commit; name two")
    if not git("rev-list", "--max-count=1", good[1], f"^{bad[1]}"):
        return
    why = f"GOOD {good[0]} is no ancestor of BAD {bad[0]}"
    if not git("rev-list", "--max-count=1", bad[1], f"^{good[1]}"):
        raise ValueError(f"{why}, but its descendant; give the older commit first")
    if git("rev-parse", "--is-shallow-repository") == "true":
        raise ValueError(f"{why} in this shallow clone; run git fetch --unshallow in {git.root}")
    try:
        base = git("merge-base", good[1], bad[1])
    except GitError:
        raise ValueError(f"{why}; they have no commit in common") from None
    raise ValueError(f"{why}; the last commit that both have is {base[:10]}")


def _log(git: Git, *arguments: str) -> list[Candidate]:
    shown = ("-z", "--no-show-signature", "--encoding=UTF-8", "--date=short")
    log = git("log", *shown, "--format=%H%x1f%an%x1f%ad%x1f%s", *arguments, "--")
    fields = [_text(entry).split("\x1f", 3) for entry in log.split("\0") if entry]
    return [
        Candidate(id=sha, author=author, date=date, subject=subject)
        for sha, author, date, subject in fields
    ]


def _text(entry: str) -> str:
    """As JSON can hold it, which is UTF-8."""
    return entry.encode(errors="surrogateescape").decode(errors="replace")

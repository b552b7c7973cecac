"""Whether BASE is what HEAD builds on: else others' changes count as HEAD's."""

from pathlib import Path

from harness.machine.git import Git, GitError
from harness.tracking.gate.trees import Tree, checkout


def others_changes(repo: Path, base: Tree, head: Tree, package: str) -> str:
    """What would be blamed on HEAD and is not its doing, in a sentence, or "".

    Either BASE has changes of ``package`` that HEAD lacks, or HEAD merges something into another
    commit than BASE, as CI's merge of a pull request does where the branch below has moved on.
    """
    with checkout(repo) as git:
        common = last_common(git, base.commit, head.commit)
        if common not in ("", base.commit, head.commit):
            if _differ(git, common, base.commit, package):
                return (
                    f"BASE has changes in {package}/ that HEAD lacks, and they count as undone by "
                    f"HEAD; their last common commit is {common[:10]}: gcbench gate {common[:10]} "
                    f"{head.commit[:10]} leaves them out."
                )
            return ""
        parents = git("rev-list", "--parents", "--max-count=1", head.commit).split()[1:]
        is_merge = len(parents) > 1 and base.commit not in (head.commit, *parents)
        if is_merge and common == base.commit and _differ(git, base.commit, parents[0], package):
            parent = parents[0][:10]
            return (
                f"HEAD is a merge whose first parent, {parent}, is not BASE and differs from it "
                f"in {package}/: that counts as HEAD's, too; gcbench gate {parent} "
                f"{head.commit[:10]} leaves it out."
            )
    return ""


def last_common(git: Git, one: str, other: str) -> str:
    """Their last common commit; "" where they have none, or a shallow clone does not have it."""
    try:
        return git("merge-base", one, other)
    except GitError:
        return ""


def _differ(git: Git, one: str, other: str, package: str) -> bool:
    return bool(git("diff-tree", "-r", "--name-only", one, other, "--", package))

"""git, as it is asked: without the caller's hooks, locks or questions."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

# Within a git hook these point at the hook's repository, whatever -C says.
_OTHER_REPOSITORY = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")


class GitError(ValueError):
    """git's refusal, in one sentence."""


def git(root: Path, *arguments: str, environment: Mapping[str, str] = {}) -> str:
    """What git prints, stripped of white space. Raises GitError where it fails or is not there."""
    kept = {name: value for name, value in os.environ.items() if name not in _OTHER_REPOSITORY}
    quiet = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
    try:
        answer = subprocess.run(
            ["git", "-C", str(root), *arguments],
            env=kept | quiet | dict(environment), capture_output=True, text=True, check=False,
            errors="surrogateescape",
        )  # fmt: skip
    except FileNotFoundError:
        raise GitError("git is not installed here") from None
    if answer.returncode:
        said = answer.stderr.strip().splitlines() or ["it said nothing"]
        raise GitError(f"git {arguments[0]} failed in {root}: {said[-1]}")
    return answer.stdout.strip()

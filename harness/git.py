"""git, as it is asked: without the caller's hooks, locks, language or questions."""

import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

# Within a git hook these point at the hook's repository, whatever -C says.
_OTHER_REPOSITORY = frozenset(
    {
        "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR",
        "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE",
    }
)  # fmt: skip
# An index of one's own still calls post-index-change, and a split one writes into the repository.
_ALONE = [f"core.hooksPath={os.devnull}", "core.fsmonitor=false", "core.splitIndex=false"]


class GitError(ValueError):
    """git's refusal, in one sentence."""


def git(root: Path, *arguments: str, environment: Mapping[str, str] = {}) -> str:
    """What git prints, less line ends around it. Raises GitError where it fails or is not there.

    Bytes that are no UTF-8, as file names may have them, come as surrogates.
    """
    kept = {name: value for name, value in os.environ.items() if name not in _OTHER_REPOSITORY}
    quiet = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    settings = [part for setting in _ALONE for part in ("-c", setting)]
    try:
        answer = subprocess.run(
            ["git", "-C", str(root), *settings, *arguments],
            env=kept | quiet | dict(environment), capture_output=True, check=False,
            encoding="utf-8", errors="surrogateescape",
        )  # fmt: skip
    except FileNotFoundError:
        raise GitError("git is not installed here") from None
    except OSError as error:
        raise GitError(f"git cannot be run here: {error.strerror}") from None
    if answer.returncode:
        why = _reason(answer.returncode, answer.stderr)
        raise GitError(f"git {arguments[0]} failed in {root}: {why}")
    return answer.stdout.strip("\n")


def changed_files(root: Path, *paths: str, untracked: bool = True) -> list[str]:
    """Files that differ from the last commit, in these paths or anywhere. Raises GitError.

    Of a submodule it counts which commit is checked out: to see more, git would run in there.
    """
    listed = git(
        root, "status", "--porcelain", "-z", "--no-renames", "--ignore-submodules=dirty",
        f"--untracked-files={'all' if untracked else 'no'}", "--", *paths,
    )  # fmt: skip
    return [entry[3:] for entry in listed.split("\0") if entry]


def _reason(status: int, stderr: str) -> str:
    if status < 0:
        return f"it was killed by {signal.Signals(-status).name}"
    # Advice comes after the reason, and warnings before it.
    said = stderr.encode(errors="surrogateescape").decode(errors="replace").strip().splitlines()
    grave = [line for word in ("fatal: ", "error: ") for line in said if line.startswith(word)]
    return (grave or said[-1:] or ["it said nothing"])[0]

"""What reports call a release of vLLM, which may be a checkout."""

from pathlib import Path

from engines.vllm.releases import layer, own_label
from engines.vllm.versions import is_version
from harness.machine.git import GitError, changed_files, git


def release_label(release: str) -> str:
    """The version, or of a path what git calls it, else what vLLM does. Raises ReleaseError."""
    described = "" if is_version(release) else _described(layer(release))
    return described or own_label(release)


def _described(folder: Path) -> str:
    """ "" unless ``folder`` is the top of a checkout: one around it says nothing of vLLM."""
    try:
        if git(folder, "rev-parse", "--show-cdup"):
            return ""
        name = git(folder, "describe", "--tags", "--always")
        return name + ("-dirty" if changed_files(folder, untracked=False) else "")
    except GitError:
        return ""

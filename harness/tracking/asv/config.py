"""``asv.conf.json``: where the results are, and which keys of it nobody reads."""

from difflib import get_close_matches
from pathlib import Path
from typing import Any

from harness.files import StoreError
from harness.format import excerpt
from harness.tracking.asv.json_files import read_json

_ASV = "0.6.6"
_MOST_SENTENCES = 20
KEYS = frozenset(
    {
        "benchmark_dir",
        "branches",
        "build_cache_size",
        "build_command",
        "conda_channels",
        "conda_environment_file",
        "default_benchmark_timeout",
        "dvcs",
        "env_dir",
        "environment_type",
        "exclude",
        "hash_length",
        "html_dir",
        "include",
        "install_command",
        "install_timeout",
        "launch_method",
        "matrix",
        "plugins",
        "project",
        "project_url",
        "pythons",
        "regressions_first_commits",
        "regressions_thresholds",
        "repo",
        "repo_subdir",
        "results_dir",
        "show_commit_url",
        "uninstall_command",
        "wheel_cache_size",
    }
)
"""What that asv reads; any other key it lets pass without a word."""


def read_config(path: Path) -> dict[str, Any]:
    """The configuration as it stands. Raises ValueError where it cannot be read."""
    try:
        return read_json(path, 1, comments=True)
    except StoreError as error:
        raise ValueError(str(error)) from error


def unknown_keys(path: Path) -> list[str]:
    """A sentence for each key that is of a newer asv, or mistyped. Raises ValueError."""
    unknown = [key for key in read_config(path) if key not in KEYS]
    said = [
        f"{path} has the key {excerpt(key)}, which asv {_ASV} does not know: gcbench ignores it; "
        f"the nearest that both know is {get_close_matches(key[:60], KEYS, n=1, cutoff=0)[0]!r}."
        for key in unknown[:_MOST_SENTENCES]
    ]
    if len(unknown) > _MOST_SENTENCES:
        more = len(unknown) - _MOST_SENTENCES
        said.append(f"{path} has {more:,} more keys that asv {_ASV} does not know.")
    return said


def asv_results_folder(path: Path) -> Path:
    """The folder of results that a configuration names, from the folder that it lies in."""
    named = read_config(path).get("results_dir", "results")
    if not isinstance(named, str):
        raise ValueError(
            f"{path}: results_dir is {excerpt(named)}; it must be the name of a folder"
        )
    return path.parent / named

"""The checkout of which an asv configuration has the results, and what is in its history."""

from collections.abc import Collection, Sequence
from pathlib import Path

from harness.format import excerpt
from harness.machine.git import git
from harness.tracking.asv.config import asv_results_folder, read_config


def config_of(results: Path) -> Path | None:
    """The ``asv.conf.json``, in a folder around ``results``, that names them as its own."""
    for folder in results.resolve().parents:
        path = folder / "asv.conf.json"
        try:
            if path.is_file() and asv_results_folder(path).resolve() == results.resolve():
                return path
        except ValueError:
            continue
    return None


def repository(config: Path) -> Path:
    """The checkout that a configuration names. Raises ValueError where it is none here."""
    named = read_config(config).get("repo", ".")
    if not isinstance(named, str) or "\0" in named:
        raise ValueError(f"{config}: repo is {excerpt(named)}; it must be the path of a clone")
    folder = config.resolve().parent / named
    if not folder.is_dir():
        raise ValueError(
            f"{config}: repo is {excerpt(named)}, and gcbench needs a clone on this machine; "
            "make one and give its path there"
        )
    return folder


def branches(config: Path) -> list[str]:
    """The branches that a configuration names, asv's own choice where it names none."""
    named = read_config(config).get("branches", ["HEAD"])
    if not isinstance(named, list) or not all(isinstance(each, str | None) for each in named):
        raise ValueError(f"{config}: branches is {excerpt(named)}; it must be a list of names")
    return [each or "HEAD" for each in named]


def rewritten(root: Path, names: Sequence[str], commits: Collection[str]) -> set[str]:
    """Those of ``commits`` that are an ancestor of no branch: their history was rewritten.

    Raises ValueError where the checkout cannot tell.
    """
    if option := next((name for name in names if name.startswith("-")), ""):
        raise ValueError(f"there is no branch {option!r}; name the branches that {root} has")
    if git(root, "rev-parse", "--is-shallow-repository") == "true":
        raise ValueError(f"{root} is a shallow clone, which lacks history: git fetch --unshallow")
    return set(commits) - set(git(root, "rev-list", *names, "--").split())

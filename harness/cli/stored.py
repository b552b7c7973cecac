"""A stored run by its name, of whatever kind."""

from difflib import get_close_matches
from pathlib import Path

from engines.nearest import nearest
from harness.result.result import RESULT_FILE

LATEST = "latest"


def find_run(name: str, runs: Path) -> Path:
    """The file of a run: its path, the path of its folder, its name in ``runs``, or ``latest``.

    Raises ValueError where there is none.
    """
    if name == LATEST:
        if not (found := stored_runs(runs)):
            raise ValueError(f"{runs} holds no finished run; gcbench compare makes one")
        return found[0]
    for path in (Path(name), runs / name):
        if path.is_file():
            return path
        if path.is_dir() and (file := _result_of(path)):
            return file
    if (runs / name).is_dir() or Path(name).is_dir():
        raise ValueError(
            f"{name} holds no result: it was ended before its first summary, and goes on by its "
            f"command with --resume {Path(name).name}"
        )
    stored = [path.parent.name for path in stored_runs(runs)]
    known = [*get_close_matches(name, [LATEST]), *stored, *_beside(Path(name))]
    near = f"did you mean {', '.join(nearest(name, known)[:3])}?" if known else f"{runs} has none"
    raise ValueError(f"there is no run {name!r}; {near}")


def _beside(path: Path) -> list[str]:
    """What lies where a path that is not there would."""
    is_path = len(path.parts) > 1 and path.parent.is_dir()
    return [str(each) for each in path.parent.iterdir()] if is_path else []


def find_shard(name: str, runs: Path) -> Path:
    """The folder of an experiment, whether it has a result or not. Raises ValueError."""
    for path in (Path(name), runs / name):
        if (path / "plan.json").is_file():
            return path.resolve()
    known = [path.parent.name for path in runs.glob("*/plan.json")]
    near = f"did you mean {', '.join(nearest(name, known)[:3])}?" if known else ""
    raise ValueError(f"there is no run {name!r} in {runs}; {near}".rstrip("; "))


def stored_runs(runs: Path) -> list[Path]:
    """The result files of all runs in a folder, the newest first."""
    if not runs.is_dir():
        return []
    found = [file for folder in runs.iterdir() if (file := _result_of(folder))]
    return sorted(found, key=lambda file: file.stat().st_mtime, reverse=True)


def _result_of(folder: Path) -> Path | None:
    file = folder / RESULT_FILE
    return file if file.is_file() else None

"""What lies in a folder: asked without moving anything, and without hiding a refusal."""

from collections.abc import Callable
from pathlib import Path


def subfolders(folder: Path, problems: list[str]) -> list[Path]:
    """The folders in a folder, by name; a sentence in ``problems`` where it cannot be read."""
    return _entries(folder, Path.is_dir, problems)


def down_to(root: Path, depth: int, problems: list[str]) -> list[Path]:
    """A folder, those in it, and so on, ``depth`` levels down; each before those in it."""
    inner = subfolders(root, problems) if depth else []
    return [root, *(each for folder in inner for each in down_to(folder, depth - 1, problems))]


def json_files(folder: Path, problems: list[str]) -> list[Path]:
    """What is called ``*.json`` in a folder, by name, hidden ones left out."""
    return _entries(folder, lambda p: p.suffix == ".json" and p.name[0] != ".", problems)


def _entries(folder: Path, wanted: Callable[[Path], bool], problems: list[str]) -> list[Path]:
    # Path.glob passes over a folder that may not be read as if it were empty.
    try:
        return sorted(filter(wanted, folder.iterdir()))
    except OSError as error:
        problem = f"{folder} cannot be read: {error.strerror or error}; allow this user to read it"
        if problem not in problems:
            problems.append(problem)
        return []

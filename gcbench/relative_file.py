"""A module's file, the same wherever the module is installed."""

import sys
from pathlib import Path


def relative_file(file: str) -> str:
    """A module's file below the folder of ``sys.path`` that holds it; else its bare name."""
    inside = [
        Path(file).relative_to(folder)
        for folder in sys.path
        if folder and Path(file).is_relative_to(folder)
    ]
    return min(inside, key=lambda path: len(path.parts), default=Path(Path(file).name)).as_posix()

"""The lines of source of what has run, where its files can be found."""

import linecache
from collections.abc import Sequence
from pathlib import Path


class Sources:
    """Files below some folders, the first that has one."""

    def __init__(self, roots: Sequence[str]) -> None:
        self._roots = [Path(root) for root in roots if root]

    def path(self, file: str) -> Path | None:
        """Where a file lies that was named relative to one of the folders."""
        candidates = (root / file for root in self._roots)
        return next((path for path in candidates if path.is_file()), None)

    def line(self, file: str, number: int) -> str:
        """A line of it, without its indentation; "" where there is none."""
        path = self.path(file)
        return linecache.getline(str(path), number).strip() if path else ""

    def lines(self, file: str, first: int, last: int) -> list[str]:
        """Lines of it, both ends included; none where there is no such file."""
        path = self.path(file)
        return linecache.getlines(str(path))[first - 1 : last] if path else []

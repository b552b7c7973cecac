"""A copy of the source tree in which one mutant at a time is tried, so that no checkout changes."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from mutant_list import Mutant
from tests_process import TestsProcess

_HEAVY = ("numpy", "scipy.stats", "pandas", "hypothesis", "msgspec", "psutil", "pytest")
"""Imported once for all tests, whose processes are forks: it takes longer than most tests."""
_PASSED, _FAILED = 0, 1


class TestsError(RuntimeError):
    """Tests did not run, or fail without any mutant; in a sentence and their last lines."""

    __test__ = False


@dataclass(frozen=True, slots=True)
class MutatedTree:
    """The copy's folder."""

    folder: Path

    @classmethod
    @contextmanager
    def of(cls, root: Path) -> Iterator["MutatedTree"]:
        """What git tracks and what it does not ignore of ``root``, as long as it is wanted."""
        names = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=root,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split("\0")
        os.environ["OMP_NUM_THREADS"] = "1"  # threads do not survive a fork
        for name in _HEAVY:
            import_module(name)
        with TemporaryDirectory(prefix="gcbench-mutants-") as folder:
            for name in names:
                if (root / name).is_file():
                    copy = Path(folder, name)
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(root / name, copy)
            yield cls(Path(folder))

    def check(self, tests: Iterable[str]) -> None:
        """Raises TestsError where these do not pass without a mutant, either."""
        if killer := self._first_failure(tests):
            raise TestsError(f"{killer} fails without any mutant")

    def killer(self, mutant: Mutant, number: int) -> str:
        """The first test that fails for a mutant, "" where it survives.

        ``number``: another for each mutant. Raises TestsError, and ValueError as
        `Mutant.applied`.
        """
        path = self.folder / mutant.file
        source = path.read_text()
        path.write_text(mutant.applied(source))
        # Python knows what it has compiled by size and second, and a mutant may share both.
        os.utime(path, (number, number))
        try:
            return self._first_failure(mutant.tests)
        finally:
            path.write_text(source)

    def _first_failure(self, tests: Iterable[str]) -> str:
        process = TestsProcess.start(self.folder, list(tests))
        status, said = process.end()
        if status is None:
            return "nothing: they do not end"
        if status not in (_PASSED, _FAILED):
            last = "\n".join(said.splitlines()[-15:])
            raise TestsError(f"pytest ended with {status}:\n{last}")
        failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", said, re.MULTILINE)
        return failed[1] if failed else ""

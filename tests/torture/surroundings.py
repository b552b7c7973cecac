"""What an attempt has around it, and what it must have left of it."""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil
import pyarrow.parquet
from processes import HANG_SECONDS, is_alive, unused_segments

_MARK = "GCBENCH_TORTURE"
_CODE = "code"
"""A gate's copies of two commits, which are nobody's results."""


class Surroundings:
    """A folder of an attempt's own with a folder for temporary files, and a mark.

    Every process that is started in `environment` is known by the mark, as are those it starts.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.temporary = folder, folder / "tmp"
        self.home, self.runs = folder / "home", folder / "runs"
        for each in (folder, self.temporary, self.home):
            each.mkdir(parents=True)
        self._shared = unused_segments()

    @property
    def environment(self) -> dict[str, str]:
        """For what is started here."""
        own = {
            _MARK: str(self.folder),
            "TMPDIR": str(self.temporary),
            "HOME": str(self.home),
            "GCBENCH_CACHE": str(self.folder / "cache"),
            "NO_COLOR": "1",
            "GCBENCH_LEASE": str(self.folder / "lease"),  # nobody else's measurement is waited for
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
            "PIP_RETRIES": "0",
            "PIP_CONFIG_FILE": os.devnull,
        }
        own |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        kept = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
        return kept | own

    def processes(self) -> list[psutil.Process]:
        """Those of the attempt that live."""
        mark, found = f"{_MARK}={self.folder}".encode(), []
        for folder in Path("/proc").iterdir():
            if folder.name.isdecimal() and int(folder.name) != os.getpid():
                with suppress(OSError, psutil.Error):
                    if mark in (folder / "environ").read_bytes().split(b"\0"):
                        found.append(psutil.Process(int(folder.name)))
        return [each for each in found if is_alive(each)]

    def left(self, *, temporary: bool = True) -> list[str]:
        """A sentence for each thing that is left, which is then removed.

        ``temporary``: whether temporary files count; who is killed cannot take them away.
        """
        found = []
        for process in _until_none(self.processes):
            with suppress(psutil.Error):
                found.append(f"a process is left: {' '.join(process.cmdline())[:160]}")
                process.kill()
        for path in _until_none(lambda: unused_segments() - self._shared):
            found.append(f"a shared memory segment is left: {path}")
            Path(path).unlink(missing_ok=True)
        if temporary:
            for path in _until_none(lambda: set(self.temporary.iterdir())):
                found.append(f"a temporary file or folder is left: {path.name}")
        return found

    def remove(self) -> None:
        """Take everything away."""
        shutil.rmtree(self.folder, ignore_errors=True)


def damaged(folder: Path) -> list[str]:
    """A sentence for each file of results below a folder that is not whole."""
    return [sentence for path in _files(folder) if (sentence := _damage(path))]


def half_written(folder: Path) -> list[str]:
    """A sentence for each file that still has the name under which it was being written."""
    return [
        f"half written: {path.relative_to(folder)}"
        for path in _files(folder)
        if path.name.startswith(".") and path.name.endswith(".tmp")
    ]


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if _CODE not in path.relative_to(folder).parts and path.is_file() and not path.is_symlink():
            yield path


def _damage(path: Path) -> str:
    try:
        match path.suffix:
            case ".json":
                json.loads(path.read_bytes())
            case ".parquet":
                pyarrow.parquet.read_table(path)
            case ".npz":
                with np.load(path, allow_pickle=True) as columns:
                    for name in columns.files:
                        columns[name]
    except Exception as error:
        return f"{path.relative_to(path.parents[1])} is damaged: {type(error).__name__}: {error}"
    return ""


def _until_none(look: Callable[[], object]) -> list:
    """What is still there though it had time to go, on a machine that others use too."""
    deadline = time.monotonic() + HANG_SECONDS
    while (found := list(look())) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found

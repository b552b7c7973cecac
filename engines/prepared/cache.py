"""Where prepared releases are kept.

```
<cache>/vllm/base-<pinned>-py3.11/   an environment with torch and what vLLM imports
             base-<pinned>-py3.11.log
             0.11.2/                 the Python files of a release, to put first on its path
             .lock                   held by the one process that writes
```
"""

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from engines.prepared.project import Project


class ReleaseError(ValueError):
    """A release that cannot be had. One sentence: what is wrong, where, what to do."""


@contextmanager
def writing_release(folder: Path) -> Iterator[None]:
    """Turn what the file system refuses inside into a ReleaseError that names ``folder``."""
    try:
        yield
    except OSError as error:
        raise ReleaseError(
            f"cannot write to {folder}: {error.strerror or error}; make room there, or set "
            "GCBENCH_CACHE to another folder"
        ) from error


@contextmanager
def only_writer(project: Project, say: Callable[[str], None]) -> Iterator[IO[str]]:
    """Make the project's folder and keep other processes from writing to it; the open lock file.

    Waits for another writer, after a message. Raises ReleaseError where the folder cannot be made.
    """
    folder = project.folder
    with writing_release(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("w")
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another process that prepares {project.name} in {folder}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock

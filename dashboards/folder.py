"""A folder that is there whole or not at all, and that never takes another's place."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.files import StoreError, writing

MARK = "gcbench-dashboard.txt"
"""Says that a folder is a dashboard, so that the next may replace it."""


@contextmanager
def replacing_folder(target: Path) -> Iterator[Path]:
    """Give an empty folder beside ``target``, which takes its place when all went well.

    Raises StoreError where that cannot be written, or ``target`` is something else than a
    dashboard or an empty folder.
    """
    target = Path.cwd() / target  # not resolve(): a link would lose its name
    with writing(target):
        _refuse_another(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        new, old = (
            target.with_name(f".{target.name}.{os.getpid()}.{word}") for word in ("new", "old")
        )
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir()
    try:
        yield new
        with writing(target):
            (new / MARK).write_text("Made by `gcbench dashboard`, which may replace it.\n")
            if not target.exists():
                new.rename(target)
                return
            target.rename(old)
            try:
                new.rename(target)
            except OSError:
                old.rename(target)
                raise
    finally:
        shutil.rmtree(new, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _refuse_another(target: Path) -> None:
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise StoreError(f"{target} is not a folder; name another place with --output DIR")
    if target.is_dir() and any(target.iterdir()) and not (target / MARK).is_file():
        raise StoreError(
            f"{target} holds something else than a dashboard; empty it, or name another place "
            "with --output DIR"
        )

"""What asv has measured of a commit comes among the results whole or not at all.

asv writes its files one by one, where a kill leaves half of one. So a commit is measured in a
folder of its own, which is renamed once all is there; then its files are put where they belong,
by whichever run comes first.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

from harness.files import write_whole, writing

_DONE, _PARTIAL = ".done", ".partial"


def clear(staging: Path, target: Path) -> None:
    """Throw away what a killed run has left half done, of measuring and of landing in ``target``.

    Raises StoreError.
    """
    with writing(staging):
        for left in staging.glob(f"*{_PARTIAL}"):
            shutil.rmtree(left)
    with writing(target):
        for temporary in target.rglob(".*.json.*.tmp"):
            temporary.unlink()


def stage(staging: Path, name: str, measure: Callable[[Path], str]) -> str:
    """Have ``name`` measured into a folder, and keep that if ``measure`` gives no reason why not.

    Returns the reason. Raises StoreError.
    """
    partial = staging / f"{name}{_PARTIAL}"
    with writing(staging):
        shutil.rmtree(partial, ignore_errors=True)
    if reason := measure(partial):
        return reason
    with writing(staging):
        partial.rename(staged(staging, name))
    return ""


def staged(staging: Path, name: str) -> Path:
    """Where `stage` keeps what it had measured."""
    return staging / f"{name}{_DONE}"


def land(staging: Path, results: str, target: Path) -> None:
    """Put the files of all that was staged, those of its folder ``results``, into ``target``.

    A commit's own files come last: who sees them sees all that belongs to them. Raises StoreError.
    """
    for done in sorted(staging.glob(f"*{_DONE}")):
        source = done / results
        paths = sorted(
            (path for path in source.rglob("*.json")),
            key=lambda path: path.name not in ("benchmarks.json", "machine.json"),
        )
        for path in paths:
            place = target / path.relative_to(source)
            with writing(place):
                place.parent.mkdir(parents=True, exist_ok=True)
            write_whole(place, path.read_bytes())
        with writing(staging):
            shutil.rmtree(done)

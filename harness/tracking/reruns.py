"""What measuring two commits side by side once more has given, kept beside asv's results."""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from harness.files import StoreError, decode_versioned, indented, set_aside, write_whole
from harness.tracking.detect.change import Rerun
from harness.tracking.verdict import Key

RERUNS_SCHEMA = "gcbench.reruns/1"
_NAME = "gcbench-reruns.json"


class StoredRerun(msgspec.Struct, frozen=True, kw_only=True):
    """A re-run of one series; ``ratio`` is after / before, of as many pairs as ``rounds``.

    ``newest``: the newest commit there was then; "" (in files from before) where it is ``after``.
    """

    machine: str
    environment: str
    series: str
    before: str
    after: str
    ratio: float
    ci95: tuple[float, float]
    rounds: int
    newest: str = ""


class _File(msgspec.Struct, frozen=True, kw_only=True):
    reruns: list[StoredRerun]
    schema: str = RERUNS_SCHEMA


def load_reruns(results: Path) -> list[StoredRerun]:
    """Those kept in an asv results folder. Raises StoreError where the file is none."""
    path = results / _NAME
    return decode_versioned(path, _File, RERUNS_SCHEMA).reruns if path.exists() else []


def add_reruns(results: Path, new: list[StoredRerun]) -> None:
    """Keep more of them; a file that cannot be read is put aside. Raises StoreError."""
    try:
        known = load_reruns(results)
    except StoreError:
        set_aside(results / _NAME)
        known = []
    write_whole(results / _NAME, indented(_File(reruns=[*known, *new])))


def by_series(stored: Iterable[StoredRerun]) -> dict[Key, list[Rerun]]:
    """As `harness.tracking.judge_figures.judge_all` takes them."""
    found: dict[Key, list[Rerun]] = {}
    for each in stored:
        run = Rerun(each.before, each.after, each.ratio, each.ci95, each.newest)
        found.setdefault((each.machine, each.environment, each.series), []).append(run)
    return found

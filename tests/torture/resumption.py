"""Going on with what a signal or a crash point has left: nothing lost, nothing measured twice."""

import json
from pathlib import Path
from typing import NamedTuple

from commands import status_of
from corpus import Corpus
from surroundings import Surroundings, damaged, half_written
from targets import LIMIT_SECONDS, Target, start

from harness.experiment.store import INCOMPLETE_FILE

Stored = tuple[int, bytes]
"""When a file was written, and its content."""


class Whole(NamedTuple):
    """A command that was let alone: how long it took, which trials it stored."""

    seconds: float
    trials: frozenset[str]


def resumed(target: Target, place: Surroundings, corpus: Corpus, whole: Whole) -> list[str]:
    """Go on with what there is; what was lost, or measured once more."""
    before = _whole_rounds(_stored(place.runs), whole)
    begun = [path.parent.name for path in place.runs.glob("*/plan.json")]
    begun = begun or [path.parent.name for path in place.runs.glob(f"*/{INCOMPLETE_FILE}")]
    more = ["--resume", begun[0]] if begun else []
    process = start(target, place, corpus, *more)
    if (status := status_of(process, LIMIT_SECONDS)) != 0:
        said = (place.folder / "err").read_text(errors="replace")
        return [f"resumed, it ended with {status}: {said.strip()[-300:]}"]
    after, found = _stored(place.runs), []
    if changed := [name for name, of in before.items() if after.get(name) != of]:
        found.append(f"stored trials were lost or measured again: {changed}")
    if {name.rpartition("/")[2] for name in after} != whole.trials:
        found.append(f"{len(after)} trials are stored of {len(whole.trials)}")
    newest = max(place.runs.glob("*/result.json"), key=lambda path: path.stat().st_mtime)
    if (
        not json.loads(newest.read_bytes())["is_complete"]
        or (newest.parent / INCOMPLETE_FILE).exists()
    ):
        found.append("resumed, it is not complete")
    return found + place.left() + damaged(place.runs) + half_written(place.runs)


def _stored(runs: Path) -> dict[str, Stored]:
    """Results that must stay as they are; a failure is tried again."""
    found = {}
    for path in runs.glob("*/trials/*.json"):
        content = path.read_bytes()
        if json.loads(content).get("result"):
            found[str(path.relative_to(runs))] = (path.stat().st_mtime_ns, content)
    return found


def _whole_rounds(stored: dict[str, Stored], whole: Whole) -> dict[str, Stored]:
    """Those of rounds that are all there: what was measured in turns is measured again in turns."""
    names = {name.rpartition("/")[2] for name in stored}
    lacking = {_round(name) for name in whole.trials - names}
    return {name: of for name, of in stored.items() if _round(name) not in lacking}


def _round(name: str) -> str:
    return name.rpartition("/")[2].partition("-")[0]

"""A suspected change measured again, both commits in turn: they share the machine's moods."""

import math
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from harness.files import writing
from harness.statistics.paired_ratio import paired_ratio
from harness.tracking.asv.result_files import read_figures
from harness.tracking.detect.page import MachineEvent
from harness.tracking.nightly.run_asv import RESULTS, Asv
from harness.tracking.nightly.staging import stage, staged
from harness.tracking.reruns import StoredRerun
from harness.tracking.verdict import Key, SeriesVerdict


class Suspicion(NamedTuple):
    """Two commits between which some series may have changed; the newest there is."""

    before: str
    after: str
    newest: str
    keys: frozenset[Key]

    @property
    def bench(self) -> str:
        """A regular expression of these series alone, as `asv run --bench` takes it."""
        return f"^(?:{'|'.join(sorted(re.escape(key[2]) for key in self.keys))})$"


def suspicions(
    verdicts: Mapping[Key, SeriesVerdict],
    machine: str,
    known: Iterable[StoredRerun],
    events: Iterable[MachineEvent] = (),
) -> list[Suspicion]:
    """What a machine should measure again: is there a change, and then, which commit made it.

    What many series share and may be a commit's comes before all else, by a few of them. Then what
    tonight has made certain, then suspicions, then older alerts, of each the pair
    with most series. A series that was measured again with the same two commits is left out, and
    so is one whose commit an exact metric knows.
    """
    done = {
        (each.machine, each.environment, each.series, each.before, each.after) for each in known
    }
    exact = {
        judged.change.first_after
        for each in verdicts.values()
        if each.series.kind == "exact"
        for judged in each.news
    }
    pairs: dict[tuple[int, str, str, str], set[Key]] = {}
    for key, each in verdicts.items():
        told = [*each.news, *([each.suspicion] if each.suspicion else [])]
        for change in [judged.change for judged in told] if key[0] == machine else ():
            pair = change.next_pair
            is_open = change.certainty == "suspected"
            if not pair or (*key, *pair) in done or exact.intersection(change.plausible):
                continue
            rank = 1 if is_open else 2 if each.ago(change) else 0
            newest = list(each.places)[-1]
            pairs.setdefault((rank, *pair, newest), set()).add(key)
    for event in events:
        pair, keys = event.next_pair, set(event.representatives)
        if event.machine == machine and pair and not all((*key, *pair) in done for key in keys):
            newest = list(verdicts[event.representatives[0]].places)[-1]
            pairs.setdefault((-1, *pair, newest), set()).update(keys)
    ordered = sorted(pairs.items(), key=lambda each: (each[0][0], -len(each[1])))
    return [Suspicion(*pair[1:], frozenset(keys)) for pair, keys in ordered]


class PairReruns(NamedTuple):
    """``missing``: a sentence for each thing that was not measured."""

    reruns: list[StoredRerun]
    missing: list[str]


def measure_again(
    asv: Asv, staging: Path, suspicion: Suspicion, rounds: int, on_run: Callable[[], None]
) -> PairReruns:
    """Measure both commits ``rounds`` times, each first in half of them.

    What a killed run had measured is not measured again. Raises StoreError.
    """
    before, after, newest, keys = suspicion
    sides: tuple[list[dict[Key, float]], ...] = ([], [])
    for turn in range(2 * rounds):
        side = (turn + 1) // 2 % 2  # before, after, after, before: neither is always second
        commit = (before, after)[side]
        name = f"{_name(suspicion)}{turn}"
        place = staged(staging, name)
        if not place.exists():
            reason = stage(staging, name, partial(asv.measure, commit, bench=suspicion.bench))
            if reason:
                return PairReruns([], [f"{commit[:10]} could not be measured again: {reason}"])
        sides[side].append(_values(place / RESULTS))
        on_run()
    found = PairReruns([], [])
    for key in sorted(keys):
        one, other = ([turn.get(key, math.nan) for turn in turns] for turns in sides)
        try:
            ratio = paired_ratio(one, other)
        except ValueError as why:
            found.missing.append(f"{key[2]} gave no ratio when it was measured again: {why}")
            continue
        found.reruns.append(
            StoredRerun(
                machine=key[0],
                environment=key[1],
                series=key[2],
                before=before,
                after=after,
                newest=newest,
                ratio=ratio.ratio,
                ci95=ratio.ci95,
                rounds=ratio.rounds,
            )
        )
    return found


def forget(staging: Path, but: Iterable[Suspicion] = ()) -> None:
    """Remove what was measured of all suspicions ``but`` some. Raises StoreError."""
    kept = tuple(_name(each) for each in but)
    with writing(staging):
        for path in staging.glob("*"):
            if not path.name.startswith(kept):
                shutil.rmtree(path)


def _name(suspicion: Suspicion) -> str:
    return f"{suspicion.before[:12]}-{suspicion.after[:12]}-"


def _values(results: Path) -> dict[Key, float]:
    return {
        (each.machine, each.environment, series): float(value)
        for each in read_figures(results, [])
        for series, value in zip(each.points.series, each.value, strict=True)
    }

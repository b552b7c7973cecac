"""The parts of a night that measure and judge, in their order."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from harness.files import StoreError
from harness.tracking.detect.page import MachineEvent
from harness.tracking.event_words import event_sentence
from harness.tracking.history import History, load_history
from harness.tracking.judge_figures import judge_all
from harness.tracking.nightly.commits import subject
from harness.tracking.nightly.measure_again import forget, measure_again, suspicions
from harness.tracking.nightly.result import MeasuredCommit
from harness.tracking.nightly.run_asv import RESULTS, Asv
from harness.tracking.nightly.staging import clear, land, stage
from harness.tracking.reruns import add_reruns, by_series, load_reruns
from harness.tracking.triage import Triage
from harness.tracking.verdict import Key, SeriesVerdict


class NightPlace(NamedTuple):
    """Where all of it is: asv's configuration and results, the checkout and its branches, what is
    being measured.
    """

    config: Path
    results: Path
    root: Path
    branches: Sequence[str]
    staging: Path
    reruns: Path


def take_up(place: NightPlace) -> None:
    """Go on where a killed run has stopped: keep what it had finished. Raises StoreError."""
    for folder in (place.staging, place.reruns):
        clear(folder, place.results)
    land(place.staging, RESULTS, place.results)


def measure_commit(asv: Asv, place: NightPlace, commit: str, bench: str) -> MeasuredCommit:
    """Measure a commit, and take what came of it among the results. Raises StoreError."""
    began = monotonic()
    reason = stage(place.staging, commit, partial(asv.measure, commit, bench=bench))
    land(place.staging, RESULTS, place.results)
    return MeasuredCommit(
        commit=commit,
        subject=subject(place.root, commit),
        seconds=monotonic() - began,
        reason=reason,
    )


class Looked(NamedTuple):
    """What there is to see, and the verdict on each series of it."""

    found: History
    verdicts: Mapping[Key, SeriesVerdict]
    events: Sequence[MachineEvent]
    notes: list[str]


def look_over(place: NightPlace, triage: Triage, today: date) -> Looked:
    """Judge all series of the history. Raises ValueError where nothing was ever measured."""
    found, notes = load_history(place.config), list[str]()
    if left := found.rewritten:
        some = ", ".join(commit[:10] for commit in left[:3])
        notes.append(
            f"No longer in the history of {', '.join(place.branches)}, so kept and not looked at: "
            f"{len(left)} measured commit{'s' * (len(left) > 1)} ({some}"
            f"{', …' if len(left) > 3 else ''})."
        )
    verdicts, events = judge_all(found.figures, by_series(found.reruns), triage, today)
    notes += map(event_sentence, events)
    return Looked(found, verdicts, events, notes)


class MeasuredAgain(NamedTuple):
    """``done``: how many pairs of commits of those ``tried``; ``left``: how many have to wait."""

    done: int
    tried: list[tuple[str, str]]
    left: int
    missing: list[str]


def measure_suspicions(
    asv: Asv,
    place: NightPlace,
    looked: Looked,
    *,
    most: int,
    rounds: int,
    on_turn: Callable[[int], None],
    but: Collection[tuple[str, str]] = (),
) -> MeasuredAgain:
    """Measure up to ``most`` suspected pairs of commits again, ``but`` some; keep the ratios.

    ``on_turn`` gets the number of turns there will be in all. Raises StoreError.
    """
    try:
        known = load_reruns(place.results)
    except StoreError:
        known = []
    wanted = suspicions(looked.verdicts, asv.machine, known, looked.events)
    found = [of for of in wanted if of[:2] not in but]
    chosen, missing, done = found[:most], list[str](), 0
    forget(place.reruns, but=chosen)  # a suspicion that a killed run was at may be none by now
    total = 2 * rounds * len(chosen)
    for suspicion in chosen:
        again = measure_again(asv, place.reruns, suspicion, rounds, lambda: on_turn(total))
        missing += again.missing
        if again.reruns:
            add_reruns(place.results, again.reruns)
            done += 1
    forget(place.reruns)
    return MeasuredAgain(done, [of[:2] for of in chosen], len(found) - len(chosen), missing)

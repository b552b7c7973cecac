"""Cells that a gate adds, so that changed functions run which none of its own has executed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from engines.cache import cache_root
from engines.protocol import EngineClass
from engines.registry import ENGINES
from harness.axes import AXES, Cell, values
from harness.experiment.grid import cross, traits, varying
from harness.experiment.outcomes import Trials
from harness.experiment.plan import counting_plan
from harness.explain.changed_functions import ChangedFunction
from harness.tracking.gate.kept_ways import KeptWays
from harness.tracking.gate.not_run import functions_run, not_run, size
from harness.trial.engine_config import engine_config
from harness.trial.output_hashes import QualifiedName, RanFunction
from harness.verbs.caller import Caller
from harness.verbs.gate_trials import GateTrials
from harness.verbs.session import Session

_SMALL = {"num_requests": 24, "prompt_lens": "40", "output_lens": "40"}
"""Of a trial that only has to show which functions run: two blocks a prompt, and two more."""


class Cover(NamedTuple):
    """``cells``: those to be added, with the workload of the others. ``ways``: by function, the
    flags that have it run and were not to be taken.
    """

    cells: list[Cell]
    ways: dict[QualifiedName, str]

    def still(self, functions: Sequence[ChangedFunction]) -> list[ChangedFunction]:
        """These, with what would have them run."""
        return [
            msgspec.structs.replace(each, way=self.ways.get((each.file, each.name), ""))
            for each in functions
        ]


def find_cover(trials: GateTrials, caller: Caller, functions: Sequence[ChangedFunction]) -> Cover:
    """Try HEAD in its engine's ways, and choose those that run the most of ``functions``, first of
    those that count to the digit. With ``--exact-only`` the others are named.

    Ways that ran them when another commit was tried come first, all others if these do not.
    """
    asked = trials.session.grid.cells[0]
    ran = _ran_in_small(trials, caller, asked, functions)
    cover = Cover([], {})
    for best, runs in _chosen(functions, ran):
        if traits(best).is_exact or not trials.asked.exact_only:
            cover.cells.append(best)
        else:
            cover.ways.update({(each.file, each.name): _flags(asked, best) for each in runs})
    return cover


def _chosen(
    functions: Sequence[ChangedFunction], ran: Mapping[Cell, Sequence[RanFunction]]
) -> Iterator[tuple[Cell, list[ChangedFunction]]]:
    """Of the cells those that between them run the most, and what each of them runs first."""
    left = list(functions)
    for is_exact in (True, False):
        ways = {cell: found for cell, found in ran.items() if traits(cell).is_exact == is_exact}
        while left and ways:
            best = min(ways, key=lambda cell: size(not_run(left, ways[cell])))
            rest = not_run(left, ways.pop(best))
            if size(rest) == size(left):
                break
            yield best, [each for each in left if each not in rest]
            left = rest


def _flags(asked: Cell, added: Cell) -> str:
    differing = varying([asked, added])
    return " ".join(AXES[axis].said(getattr(added, axis)) for axis in differing)


def _ran_in_small(
    trials: GateTrials, caller: Caller, asked: Cell, functions: Sequence[ChangedFunction]
) -> dict[Cell, list[RanFunction]]:
    """What HEAD runs in each way that was tried and can tell, with a few short requests."""
    small = Session(
        msgspec.structs.replace(trials.asked, **_SMALL),
        caller,
        is_prepared=False,
        beside=trials.session,
    )
    (workload,) = small.runner.schedules
    in_small = msgspec.structs.replace(asked, workload=workload, release=trials.trees[1].folder)
    small_of: dict[Cell, Cell] = {}
    ways = zip(_in_ways(trials.session, asked), _in_ways(small, in_small), strict=True)
    for cells, small_cells in ways:
        small_of.update(zip(cells, small_cells, strict=False))
    kept = KeptWays(cache_root() / "ways" / f"{asked.engine}.json")
    known = kept.load()
    guessed = {
        cell: [RanFunction(*name) for name in names]
        for cell in small_of
        if (names := known.get(_flags(asked, cell)))
    }
    likely = [cell for cell, _ in _chosen(functions, guessed)]
    found: dict[Cell, list[RanFunction]] = {}
    for label, tried in (("likely", likely), ("cover", [c for c in small_of if c not in likely])):
        if tried and (not found or _still_left(functions, found)):
            ran = _run_in(trials, small, label, [small_of[cell] for cell in tried])
            found |= {cell: ran[small_of[cell]] for cell in tried if small_of[cell] in ran}
    kept.save({_flags(asked, cell): {(e.file, e.name) for e in ran} for cell, ran in found.items()})
    return found


def _in_ways(session: Session, asked: Cell) -> Iterator[list[Cell]]:
    """A cell in each way of its engine, sized for its workload; none where it cannot run so."""
    engine: EngineClass = ENGINES.load(asked.engine)
    schedules = session.runner.schedules
    for way in engine.traits(engine_config(asked, schedules[asked.workload])).ways:
        axes = {axis: [value] for axis, value in (values(asked) | way).items()}
        try:
            yield cross(axes, schedules, {asked.workload: asked.model}).cells
        except ValueError:
            yield []


def _still_left(
    functions: Sequence[ChangedFunction], found: Mapping[Cell, Sequence[RanFunction]]
) -> bool:
    return bool(not_run(functions, sorted({each for ran in found.values() for each in ran})))


def _run_in(
    trials: GateTrials, small: Session, label: str, cells: list[Cell]
) -> dict[Cell, list[RanFunction]]:
    plan = counting_plan(
        f"{trials.name}-{label}",
        cells,
        ["outputs"],
        small.runner.schedule_hashes,
        trials.asked.seed,
        lines_of=trials.lines_of,
    )
    counted = Trials(plan, small.run(plan).outcomes)
    return {cell: ran for cell in cells if (ran := functions_run(counted, [cell]))}

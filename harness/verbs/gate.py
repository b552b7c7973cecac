"""One commit against another: exact counts first, then host time until it is precise."""

import shlex
from collections.abc import Sequence
from functools import partial
from itertools import product
from pathlib import Path

from msgspec.structs import replace

from engines.protocol import EngineClass, TreeError
from engines.registry import ENGINES
from harness.axes import AXES, Cell, Value
from harness.collector.policy import parse_policy
from harness.experiment.grid import traits, varying
from harness.experiment.plan import says_something
from harness.experiment.result import cell_id
from harness.explain.changed_functions import ChangedFunction, changed_functions
from harness.result.result import keep_result
from harness.tracking.gate.ancestry import others_changes
from harness.tracking.gate.budget import read_budget
from harness.tracking.gate.exact_counts import overall
from harness.tracking.gate.kept_counts import KeptCounts
from harness.tracking.gate.not_run import not_run
from harness.tracking.gate.plan import INSTRUCTIONS, GatePair, pair
from harness.tracking.gate.result import GateResult
from harness.tracking.gate.trees import (
    Tree,
    differing_outside,
    find_commit,
    take_tree,
    tree_differences,
)
from harness.tracking.gate.used_waivers import used_waivers
from harness.tracking.gate.waivers import read_waivers
from harness.tracking.gate.words import conclude_gate
from harness.trial.callgrind import check_callgrind
from harness.verbs.caller import Caller
from harness.verbs.gate_cover import find_cover
from harness.verbs.gate_request import GateRequest
from harness.verbs.gate_trials import Found, GateTrials
from harness.verbs.session import Session


def measure_commits(request: GateRequest, caller: Caller) -> GateResult:
    """Measure both commits with one harness; only the engine's own package is taken from them.

    Raises ValueError for what cannot be measured at all, CallgrindError where valgrind is missing.
    """
    engine = _engine(request.values("engine"))
    request, not_meant = _with_shapes(request, engine)
    session = Session(request, caller, is_prepared=False)
    cells = _cells(session, not_meant)
    _check_counts(request, cells)
    repo, package = request.repo, engine.package
    for commit in (request.base, request.head):
        find_commit(repo, commit, package)  # refused before a folder is made
    waivers = read_waivers(repo, request.base, request.head, package)
    budget = read_budget(repo, request.head, package)
    session.look_around()
    name = session.runner.new_name("gate")
    code = (request.output / name / "code").resolve()
    trees = [
        take_tree(repo, request.base, package, code / "base"),
        take_tree(repo, request.head, package, code / "head"),
    ]
    since = take_tree(repo, budget.since, package, code / "since") if budget else None
    for tree in filter(None, (*trees, since)):
        _refuse_tree(tree, engine)
    touched = changed_functions(Path(trees[0].folder), Path(trees[1].folder), Path(package).name)
    # Now: a work tree may move on.
    notes = tree_differences(repo, trees[0], trees[1], package)
    outside = differing_outside(repo, trees[0], trees[1], package)
    if not_heads := others_changes(repo, trees[0], trees[1], package):
        notes.insert(0, not_heads)
        caller.say(not_heads)
    kept = KeptCounts.of_user(package)
    lines_of = [(each.file, each.name) for each in touched]
    trials = GateTrials(session, name, trees, request, kept, waivers, budget, since, lines_of)
    found, uncovered = _measured(trials, cells, touched, caller)
    result = GateResult(
        **session.about(name),
        base=trees[0],
        head=trees[1],
        tolerance=request.tolerance / 100,
        verdict=overall(
            found.judged.cells,
            found.judged.missing,
            is_covered=request.allow_uncovered or not uncovered,
        ),
        cells=found.judged.cells,
        missing=found.judged.missing,
        failures=found.failures,
        conclusions=conclude_gate(found.judged.cells),
        package=package,
        outside=outside,
        notes=[*notes, *found.judged.notes],
        not_run=uncovered,
        waivers=used_waivers(waivers, found.judged.cells),
        timed_seconds=found.timed_seconds,
        is_complete=not found.is_interrupted,
    )
    keep_result(request.output, result)
    return result


def _check_counts(request: GateRequest, cells: Sequence[Cell]) -> None:
    """Raises ValueError where what is asked for cannot be counted of a cell, CallgrindError where
    it can of none.
    """
    if request.exact_only and not all(traits(cell).is_exact for cell in cells):
        raise ValueError(
            "--exact-only: counts need not repeat here, because there is a clock, a thread or a "
            "second process; use --device null and leave --output-processing, --worker and "
            "--axis engine-core out, or leave --exact-only out"
        )
    if not request.instructions:
        return
    for cell in cells:
        if not says_something(cell, INSTRUCTIONS):
            raise ValueError(
                f"--instructions: engine {cell.engine} as asked is not one thread that starts "
                "in a moment, as valgrind needs; leave --instructions out"
            )
    check_callgrind()


def _cells(session: Session, not_meant: set[tuple[str, str]]) -> list[Cell]:
    cells = [
        cell for cell in session.grid.cells if (cell.representation, cell.delivery) not in not_meant
    ]
    if not_meant:
        session.grid = session.grid._replace(left_out=[])  # nobody has asked for them
    if any("disabled" in parse_policy(cell.gc) for cell in cells):
        raise ValueError("--gc disabled: the gate measures it where times change; leave it out")
    return cells


def _measured(
    trials: GateTrials, cells: Sequence[Cell], touched: Sequence[ChangedFunction], caller: Caller
) -> tuple[Found, list[ChangedFunction]]:
    """What came of the cells and of those that were added, and which functions none has run."""
    axes = varying(cells)
    pairs = _pairs(cells, axes, trials.trees)
    found = trials.measure(pairs, partial(_command, caller.command, axes))
    uncovered = not_run(touched, found.ran)
    if not uncovered or found.is_interrupted:
        return found, uncovered
    cover = find_cover(trials, caller, uncovered)
    if cover.cells:
        axes = varying([*cells, *cover.cells])
        more = _pairs(cover.cells, axes, trials.trees, first=len(cells))
        others = trials._replace(name=f"{trials.name}-more")
        found = found.joined(others.measure(more, partial(_command, caller.command, axes)))
    return found, cover.still(not_run(touched, found.ran))


def _pairs(
    cells: Sequence[Cell], axes: Sequence[str], trees: Sequence[Tree], first: int = 0
) -> list[GatePair]:
    base, head = (tree.folder for tree in trees)
    return [
        pair(cell_id(cell, axes), cell, base, head, number)
        for number, cell in enumerate(cells, first)
    ]


def _refuse_tree(tree: Tree, engine: EngineClass) -> None:
    try:
        engine.launch("", tree.folder)
    except TreeError as error:
        raise ValueError(f"{tree.label} cannot be measured: {error.why}") from None
    except ValueError as error:
        raise ValueError(f"{tree.label} cannot be measured: {error}") from None


def _engine(names: list[Value]) -> EngineClass:
    if len(names) > 1:
        several = ",".join(map(str, names))
        raise ValueError(f"--engine {several}: the gate takes one, whose package the commits hold")
    engine: EngineClass = ENGINES.load(str(names[0]))
    return engine


def _with_shapes(
    request: GateRequest, engine: EngineClass
) -> tuple[GateRequest, set[tuple[str, str]]]:
    """The request with the shapes it asks for, or the engine's own; and pairs that none means."""
    shapes, deliveries = request.axes.get("representation"), request.axes.get("delivery")
    not_meant: set[tuple[str, str]] = set()
    if shapes or deliveries:
        shapes, deliveries = shapes or [engine.shapes[0][0]], deliveries or ["per_request"]
    else:
        shapes = list(dict.fromkeys(shape for shape, _ in engine.shapes))
        deliveries = list(dict.fromkeys(delivery for _, delivery in engine.shapes))
        not_meant = {(str(a), str(b)) for a, b in product(shapes, deliveries)} - set(engine.shapes)
    axes = request.axes | {"representation": shapes, "delivery": deliveries}
    return replace(request, axes=axes), not_meant


def _command(command: str, axes: Sequence[str], each: GatePair) -> str:
    """The command of this run, narrowed to one cell."""
    words = [word for axis in axes for word in AXES[axis].words(getattr(each.base, axis))]
    return " ".join([command, shlex.join(words)]).strip()

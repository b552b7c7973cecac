"""The commit with which an exact metric moved: about log2(N) trials of N commits."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, ClassVar

from msgspec.structs import replace

from engines.protocol import EngineClass
from engines.registry import ENGINES
from engines.release_names import is_version
from harness.axes import Value, values
from harness.experiment.grid import traits
from harness.explain.largest_changes import LargestChange
from harness.machine.interrupts import held_interrupts
from harness.metrics import Metric
from harness.result.result import keep_result
from harness.tracking.bisect.bisection import Bisection
from harness.tracking.bisect.counting import check_cell, find_metric
from harness.tracking.bisect.result import BisectResult
from harness.verbs.bisect_candidates import Commits, Counter, ReleaseCandidates, Source
from harness.verbs.caller import Caller
from harness.verbs.request import Flag, GridRequest, words
from harness.verbs.session import Session

_OWN = frozenset({"metric", "output", "trial_timeout"})
"""What the commands to run next say themselves, or do without."""
_NOT_OF_RELEASES = frozenset({"engine", "heap_objects", "wire", "delivery"})


class BisectRequest(GridRequest, frozen=True, kw_only=True):
    """Between two commits, or with no ``repo`` two releases that the engine has."""

    defaults: ClassVar[dict[str, list[Value]]] = {
        "workload": ["opt125m-48-500"],
        "device": ["null"],
        "gc": ["freeze"],
    }
    decided: ClassVar[dict[str, list[Value]]] = {"release": [""], "python": [""]}

    good: str
    bad: str = "HEAD"
    metric: Annotated[
        str, Flag("An exact metric.", section="Options", is_main=True, metavar="NAME")
    ]
    repo: Annotated[
        Path | None,
        Flag(
            "The checkout with both commits.  [default: the current folder]",
            section="Options",
            is_main=True,
        ),
    ] = None


def find_moving_commit(request: BisectRequest, caller: Caller) -> BisectResult:
    """Find it; Ctrl-C leaves what is known by then. Raises ValueError for what cannot be asked."""
    metric = find_metric(request.metric)
    engine = _engine(request.values("engine"))
    shapes = {"representation": [engine.shapes[0][0]], "delivery": ["per_request"]}
    session = Session(replace(request, axes={**shapes, **request.axes}), caller, is_prepared=False)
    check_cell(session.cell, metric)
    source = _source(engine, request)
    name = session.runner.new_name("bisect")
    counter = Counter(session, name, metric, source, say=caller.say)
    bisection = Bisection(source.candidates, metric, source.tree_of, counter.count)
    functions: list[LargestChange] = []
    try:
        bisection.run()
        if bisection.conclusion in ("found", "several") and traits(session.cell).is_exact:
            ends = bisection.search.good, bisection.search.bad
            functions = counter.functions(*(bisection.candidates[end] for end in ends))
    except KeyboardInterrupt:
        pass  # the conclusion says so
    with held_interrupts():
        result = _result(request, session, name, metric, source, bisection)
        result = replace(result, functions=functions, notes=[*result.notes, *counter.notes])
        keep_result(request.output, result)
    return result


def _engine(names: list[Value]) -> EngineClass:
    if len(names) > 1:
        several = ",".join(map(str, names))
        raise ValueError(f"--engine {several}: bisect takes one, whose commits it measures")
    engine: EngineClass = ENGINES.load(str(names[0]))
    return engine


def _source(engine: EngineClass, request: BisectRequest) -> Source:
    good, bad, repo = request.good, request.bad, request.repo
    own = None if repo else engine.releases()
    if own and is_version(good) and is_version(bad):
        return ReleaseCandidates.between(own, good, bad)
    return Commits.between(repo or Path(), good, bad, engine.package)


def _result(
    request: BisectRequest,
    session: Session,
    name: str,
    metric: Metric,
    source: Source,
    of: Bisection,
) -> BisectResult:
    """What there is to say, however far the bisection has come."""
    ends = good, bad = of.search.good, of.search.bad
    has_suspects = {*ends} <= of.figures.keys() and of.conclusion not in ("same", "unmeasured")
    is_told = of.conclusion in ("found", "several")
    labels = [of.candidates[end].label for end in ends]
    before, after = (of.figures[end].value if has_suspects else None for end in ends)
    said = words(request, _OWN)
    left = (
        ((0, good), (request.good, labels[0])),
        ((bad, len(of.candidates) - 1), (labels[1], request.bad)),
    )
    return BisectResult(
        **session.about(name),
        candidate_kind=source.kind,
        package=ENGINES.load(session.cell.engine).package,
        metric=metric.name,
        unit=metric.unit,
        direction=metric.direction,
        good=request.good,
        bad=request.bad,
        conclusion=of.conclusion,
        num_commits=source.num_commits,
        num_candidates=len(of.candidates) - 1,
        suspects=[of.candidates[each] for each in of.search.suspects] if has_suspects else [],
        before=before,
        after=after,
        functions=[],
        measured=of.measured,
        explain=_explain(request, source.kind, labels) if is_told else "",
        rest=[
            shlex.join(["gcbench", "bisect", *between, "--metric", metric.name, *said])
            for positions, between in left
            if is_told and of.differ(*positions)
        ],
        axes={axis: value for axis, value in values(session.cell).items() if axis != "release"},
        notes=session.notes,
    )


def _explain(request: BisectRequest, kind: str, labels: Sequence[str]) -> str:
    """The command that says what else changed between two candidates."""
    if kind == "release":
        said = words(request, _OWN | _NOT_OF_RELEASES)
        package = ENGINES.load(str(request.value("engine"))).package
        return shlex.join(["gcbench", "releases", package, *labels, *said])
    return shlex.join(["gcbench", "gate", *labels, *words(request, _OWN), "--exact-only"])

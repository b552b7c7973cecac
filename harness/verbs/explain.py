"""What a step costs, line by line, and what makes the collector run."""

from pathlib import Path
from typing import Annotated, ClassVar, Literal, NamedTuple, get_args

from msgspec.structs import replace

from engines.protocol import EngineClass
from engines.registry import ENGINES
from engines.release_names import is_range
from harness.axes import Value, values, worth_mentioning
from harness.experiment.grid import traits
from harness.experiment.outcomes import Trials
from harness.experiment.plan import counting_plan
from harness.explain.bodies import (
    BY_SITE,
    ExplainedVersion,
    functions_body,
    growth_body,
    sites_body,
)
from harness.explain.result import By, ExplainBody, ExplainResult, GrowthBody
from harness.explain.sides import BY_FUNCTION
from harness.machine.interrupts import held_interrupts
from harness.not_measured import NotMeasured
from harness.result.result import keep_result
from harness.tracking.gate.trees import WORK_TREE, find_commit
from harness.verbs.caller import Caller
from harness.verbs.explained_versions import commit_versions, release_versions
from harness.verbs.release_sources import ReleaseSource, release_source, wanted_releases
from harness.verbs.request import Flag, GridRequest
from harness.verbs.session import Session

RankedBy = Literal[By, "collections"]


class ExplainRequest(GridRequest, frozen=True, kw_only=True):
    """One cell, or one of several releases.

    ``against``: a release, or a commit. ``every``: 0 for eight steps at full batch, and
    for those that a gate traces of two commits.
    """

    defaults: ClassVar[dict[str, list[Value]]] = {
        "workload": ["opt125m-48-300"],
        "device": ["null"],
        "gc": ["as_is"],
    }
    decided: ClassVar[dict[str, list[Value]]] = {"python": [""]}

    by: Annotated[
        RankedBy,
        Flag(
            "What functions and lines are ranked by: what they execute, the objects they make, or "
            "the collections for which their objects are the cause.",
            section="Options",
            is_main=True,
            choices=get_args(RankedBy),
        ),
    ] = "bytecodes"
    against: Annotated[
        str,
        Flag(
            "A release of the engine's project; with --repo, or where it has none, a commit.",
            section="Options",
            is_main=True,
            metavar="VERSION",
        ),
    ] = ""
    repo: Annotated[
        str,
        Flag(
            "The checkout with both commits; for an engine without releases, the current folder by "
            "default.",
            section="Options",
            is_main=True,
            metavar="PATH",
        ),
    ] = ""
    commit: Annotated[
        str,
        Flag(
            "Of the checkout, instead of the work tree as it stands.",
            section="Options",
            is_main=True,
            metavar="COMMIT",
        ),
    ] = ""
    last_patches: Annotated[
        bool,
        Flag(
            "Of a range of releases only the last of each minor version.",
            section="Options",
            is_main=True,
        ),
    ] = False
    rows: Annotated[
        int,
        Flag(
            "Functions and lines that are shown.",
            section="Options",
            is_main=True,
            least=1,
            most=10**6,
        ),
    ] = 10
    every: Annotated[
        int,
        Flag(
            "Trace one step in N of the whole run instead of eight at full batch; commits are "
            "compared in as many steps as by gate.",
            section="Options",
            is_main=True,
            least=0,
            most=10**6,
        ),
    ] = 0

    @property
    def is_along(self) -> bool:
        """Whether it is of several releases, one after another."""
        releases = self.values("release")
        return len(releases) > 1 or any(is_range(str(each)) for each in releases)


class NothingCountedError(Exception):
    """Why there is nothing to explain; or somebody ``is_interrupted`` before there was."""

    def __init__(self, why: str, *, is_interrupted: bool) -> None:
        super().__init__(why)
        self.is_interrupted = is_interrupted


class _Found(NamedTuple):
    """The run in which ``versions`` are counted, one step of so many ``every``, and why others
    cannot be, a sentence each.
    """

    run: str
    versions: list[ExplainedVersion]
    left_out: list[str]
    every: int


def count_costs(request: ExplainRequest, caller: Caller) -> ExplainResult:
    """Count the versions asked for, each in one trial.

    Raises ValueError for what cannot be asked, NothingCountedError where no count came of it.
    """
    _refuse_idle(request)
    engine: EngineClass = ENGINES.load(str(request.values("engine")[0]))
    source = release_source(engine, Path(request.repo))
    if engine.releases() or request.is_along or request.last_patches:
        texts = [str(each) for each in request.values("release")]
        releases = list[Value](wanted_releases(source, texts, last_patches=request.last_patches))
        request = replace(request, axes={**request.axes, "release": releases})
    session = Session(request, caller, is_prepared=False)
    found = _find_versions(session, engine, source, request)
    ran = session.run(
        counting_plan(
            found.run,
            list(dict.fromkeys(version.cell for version in found.versions)),
            [BY_SITE if request.by == "collections" else BY_FUNCTION],
            session.runner.schedule_hashes,
            session.runner.seed,
            found.every,
        )
    )
    body = _body(request, engine, Trials(ran.plan, ran.outcomes), found)
    if isinstance(body, NotMeasured):
        raise NothingCountedError(body.reason, is_interrupted=ran.is_interrupted)
    with held_interrupts():
        is_complete = not ran.is_interrupted
        result = _result(session, found, body, request.rows, is_complete=is_complete)
        keep_result(request.output, result)
    return result


def _refuse_idle(request: ExplainRequest) -> None:
    """Raises ValueError for what the question has no use for."""
    idle: tuple[str, ...] = ()
    why = "is for one version or two; leave it out, or name one --release"
    if request.by == "collections":
        if request.is_along:
            raise ValueError("--release: --by collections looks at one version; name one")
        idle = ("against", "every")
        why = "has no meaning with --by collections, which looks at one version; leave it out"
    elif request.is_along:
        idle = ("against", "repo", "commit")
    if name := next((each for each in idle if getattr(request, each)), ""):
        raise ValueError(f"--{name}: {why}")


def _find_versions(
    session: Session, engine: EngineClass, source: ReleaseSource, request: ExplainRequest
) -> _Found:
    """Lay out the commits, or make the releases ready. Raises ValueError for what there is not."""
    cells, runner = session.grid.cells, session.runner
    if len({cell.release for cell in cells}) < len(cells):
        raise ValueError("explain takes one value an axis, but for --release; leave the others out")
    against, package = request.against, engine.package
    if request.repo or request.commit or (against and not engine.releases()):
        repo = Path(request.repo)
        commits = [each for each in (request.commit or WORK_TREE, against) if each]
        for commit in commits:
            find_commit(repo, commit, package)  # refused before a folder is made
        run = runner.new_name("explain")
        folder = (runner.output / run / "code").resolve()
        every = request.every or (traits(cells[0]).trace_every if against else 0)
        return _Found(run, commit_versions(repo, commits, package, cells[0], folder), [], every)
    if against:
        cells = [*cells, replace(cells[0], release=against)]
    versions, left_out = release_versions(cells, engine, source, session.caller)
    if not versions or (left_out and not request.is_along):
        why = "; ".join(left_out) or "no release can be run"
        raise NothingCountedError(why, is_interrupted=False)
    return _Found(runner.new_name("explain"), versions, left_out, request.every)


def _body(
    request: ExplainRequest, engine: EngineClass, trials: Trials, found: _Found
) -> ExplainBody | NotMeasured:
    if request.by == "collections":
        adapter = "/".join(engine.__module__.split(".")[:-1])  # hands vLLM's tokens to vLLM
        return sites_body(trials, found.versions[0], [engine.package, adapter])
    if request.is_along:
        return growth_body(trials, found.versions, request.by, found.left_out)
    return functions_body(trials, found.versions, request.by)


def _result(
    session: Session, found: _Found, body: ExplainBody, rows: int, *, is_complete: bool
) -> ExplainResult:
    cell, notes = found.versions[0].cell, list(session.notes)
    if not traits(cell).is_exact:
        notes.append(
            "With threads, other processes or a clock these counts need not repeat to the digit, "
            "and work in other processes is not in them."
        )
    axes = worth_mentioning(values(session.grid.cells[0]))
    if isinstance(body, GrowthBody):
        axes.pop("release", None)  # there are several
    return ExplainResult(
        **session.about(found.run),
        axes=axes,
        body=body,
        rows=rows,
        notes=notes,
        is_complete=is_complete,
    )

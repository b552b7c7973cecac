"""A grid of cells, interleaved, with verdicts."""

from typing import Annotated, ClassVar, NamedTuple

from harness.axes import Value
from harness.experiment.plan import Plan, counting_modes
from harness.experiment.result import ExperimentResult
from harness.experiment.rounds import Precision
from harness.experiment.shard import parse_shard
from harness.trial.spec import Mode
from harness.verbs.caller import Caller
from harness.verbs.request import Flag, SpreadRequest
from harness.verbs.session import Session

_COUNTING: tuple[Mode, ...] = (
    "counts",
    "long_run",
    "probed",
    "tracked",
    "memory",
    "leaks",
    "opcodes",
    "outputs",
    "wire",
)


class CompareRequest(SpreadRequest, frozen=True, kw_only=True):
    """The first cell of the grid is the baseline, unless ``baseline`` names another.

    ``until_precise``, ``tolerance``: in per cent; ``budget``: seconds. ``name``: of a new
    experiment, "" for one made of the time and the workload.
    """

    defaults: ClassVar[dict[str, list[Value]]] = {
        "representation": ["list_of_lists", "list_of_arrays", "flat_arrays"],
        "delivery": ["per_request", "columnar"],
        "gc": ["default", "freeze"],
        "heap_objects": [700_000],
    }

    call: Annotated[
        str,
        Flag(
            "Functions without arguments, or objects with step, instead of an engine.",
            section="What to compare",
            is_main=True,
            metavar="MODULE:FUNCTION,...",
        ),
    ] = ""
    baseline: Annotated[
        str,
        Flag(
            "What the others are compared with.  [default: the first cell]",
            section="What to compare",
            metavar="AXIS=VALUE",
        ),
    ] = ""
    rounds: Annotated[
        int, Flag("Interleaved rounds; a verdict takes 7.", is_main=True, least=1)
    ] = 9
    until_precise: Annotated[
        float,
        Flag("Add rounds until each interval is within ± PCT.", metavar="PCT", least=0, most=99),
    ] = 0.0
    budget: Annotated[
        float,
        Flag(
            "Time limit for --until-precise; --rounds are run whatever they take.",
            metavar="SECONDS",
            least=0,
            most=10**6,
        ),
    ] = 1200.0
    decide: Annotated[
        str,
        Flag(
            "Metric that decides.  [default: request_throughput; host_time_per_step on device "
            "null]",
            metavar="METRIC",
        ),
    ] = ""
    tolerance: Annotated[
        float, Flag("An interval within ± PCT is called `same`.", metavar="PCT", least=0, most=99)
    ] = 2.0
    counting: Annotated[
        bool,
        Flag("Also count objects and, on device null, collections and bytecodes.", is_main=True),
    ] = True
    resume: Annotated[
        str,
        Flag(
            "Go on with an experiment that was interrupted, or with more --rounds.",
            section="Output",
            metavar="NAME",
        ),
    ] = ""
    shard: Annotated[
        str,
        Flag(
            "Measure only the I-th of N parts, or I-J/N; gcbench report --merge joins them."
            " (docs/cluster.md)",
            section="Many machines",
            metavar="I/N",
        ),
    ] = ""
    name: str = ""


class PlannedComparison(NamedTuple):
    """What is asked for, before anything runs."""

    session: Session
    plan: Plan
    precise: Precision


def planned(request: CompareRequest, caller: Caller) -> PlannedComparison:
    """Raises ValueError for what cannot be run, BusyMachineError where none becomes quiet."""
    precise = Precision(request.until_precise / 100, request.budget)
    if request.shard and precise.half_width:
        raise ValueError("--shard: no shard sees when all are precise; leave out --until-precise")
    session = Session(request, caller, shard=parse_shard(request.shard))
    cells = session.grid.cells
    plan = session.plan(
        cells,
        rounds=request.rounds,
        decide=request.decide,
        baseline=request.baseline,
        tolerance=request.tolerance / 100,
        resume=request.resume,
        name=request.name,
        counting=counting_modes(cells, _COUNTING) if request.counting else [],
    )
    return PlannedComparison(session, plan, precise)


def compare_cells(request: CompareRequest, caller: Caller) -> ExperimentResult:
    """Measure every cell of the grid beside its baseline. Raises as `planned`."""
    session, plan, precise = planned(request, caller)
    return session.summarise(session.run(plan, precise))

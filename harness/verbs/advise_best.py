"""The collector settings and shape that are best for one's own workload, measured twice."""

from msgspec.structs import replace

from harness.axes import Cell
from harness.experiment.advice import Advice, best, bound, snippet
from harness.experiment.grid import groups, varying
from harness.experiment.plan import counting_modes
from harness.experiment.result import ExperimentResult, cell_id
from harness.result.result import keep_result
from harness.trial.spec import Mode
from harness.verbs.advise_request import AdviseRequest
from harness.verbs.caller import Caller
from harness.verbs.session import Session

_TRIED: tuple[Mode, ...] = ("long_run",)
_VERIFIED: tuple[Mode, ...] = ("counts", "long_run", "leaks")
_ROUNDS = 7


def advise_best(request: AdviseRequest, caller: Caller) -> Advice:
    """Raises ValueError where there is nothing to choose from."""
    tolerance = request.tolerance / 100
    first = Session(request, caller)
    cells = first.grid.cells
    if len(cells) < 2:
        raise ValueError("there is nothing to choose from; give an axis several values")
    if len(set(groups(cells))) > 1:
        raise ValueError("advice is for one workload, device and interpreter; give one of each")
    tried = _measured(first, cells, request.first_rounds, tolerance, _TRIED)
    verified, chosen = None, best(tried)
    if chosen and tried.is_complete:
        again = Session(replace(request, seed=request.seed + 1), caller)
        by_id = {cell_id(cell, varying(cells)): cell for cell in cells}
        both = [cells[0], by_id[chosen]]
        verified = _measured(again, both, request.rounds or _ROUNDS, tolerance, _VERIFIED)
    recommends = _recommended(verified)
    policy = next((str(each.axes["gc"]) for each in tried.cells if each.id == chosen), "")
    advice = Advice(
        **first.about(tried.name),
        tried=tried,
        verified=verified,
        recommends=recommends,
        bound=bound(tried),
        snippet=snippet(policy, cells[0].batch_size) if recommends else "",
        is_complete=tried.is_complete and (verified is None or verified.is_complete),
    )
    keep_result(request.output, advice)
    return advice


def _measured(
    session: Session, cells: list[Cell], rounds: int, tolerance: float, modes: tuple[Mode, ...]
) -> ExperimentResult:
    counting = counting_modes(cells, modes)
    plan = session.plan(cells, rounds=rounds, tolerance=tolerance, counting=counting)
    return session.summarise(session.run(plan))


def _recommended(verified: ExperimentResult | None) -> str:
    """The candidate, where a fresh measurement calls it better."""
    verdicts = verified.comparisons if verified is not None and verified.is_complete else []
    return next((each.candidate for each in verdicts if each.verdict == "better"), "")

"""``gcbench advise``: the collector settings and shape that are best for one's own workload."""

from typing import Any

from harness.axes import Cell, Value
from harness.cli.exit_codes import ExitCode
from harness.cli.session import Session
from harness.cli.tell import tell
from harness.experiment.advice import Advice, best, bound, snippet
from harness.experiment.grid import groups, varying
from harness.experiment.plan import counting_modes
from harness.experiment.result import ExperimentResult, cell_id
from harness.experiment.store import write_json
from harness.report.again import report_command
from harness.result.result import RESULT_FILE
from harness.trial.spec import Mode

POLICIES: list[Value] = [
    "as_is",
    "freeze",
    "threshold:10000/10/10",
    "freeze+threshold:10000/20/20",
    "freeze+threshold:50000/20/20",
    "disabled",
]
"""What is tried: the baseline first, then what engines in the field do, then a bound."""

_COUNTING: tuple[Mode, ...] = ("counts", "leaks")


def advise_best(flags: dict[str, Any]) -> ExitCode:
    """Look at all candidates, then measure the best of them afresh beside the baseline."""
    rounds, first_rounds = (flags.pop(name) for name in ("rounds", "first_rounds"))
    tolerance = flags.pop("tolerance") / 100
    first = Session(dict(flags))
    cells = first.grid.cells
    if len(cells) < 2:
        raise ValueError("there is nothing to choose from; give an axis several values")
    if len(set(groups(cells))) > 1:
        raise ValueError("advice is for one workload, device and interpreter; give one of each")
    tried = _measured(first, cells, first_rounds, tolerance, ())
    verified, chosen = None, best(tried)
    if chosen and tried.is_complete:
        again = Session(flags | {"seed": flags["seed"] + 1, "json_path": None})
        by_id = {cell_id(cell, varying(cells)): cell for cell in cells}
        both = [cells[0], by_id[chosen]]
        verified = _measured(again, both, rounds, tolerance, _COUNTING)
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
    write_json(first.runner.output / tried.name / RESULT_FILE, advice)
    tell(advice, more=report_command(first.runner.output, tried.name), **first.told)
    return _exit_code(advice)


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


def _exit_code(advice: Advice) -> ExitCode:
    if not advice.is_complete:
        return ExitCode.INTERRUPTED
    if not advice.tried.comparisons or (advice.verified and not advice.verified.comparisons):
        return ExitCode.NOT_MEASURED
    return ExitCode.MEASURED

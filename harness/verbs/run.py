"""One trial, and everything about it."""

from typing import Annotated, get_args

from harness.experiment.run_result import RunResult
from harness.result.result import keep_result
from harness.trial.spec import Mode, TrialResult
from harness.verbs.caller import Caller
from harness.verbs.request import Flag, TimedRequest
from harness.verbs.session import Session

_MODES = get_args(Mode)


class RunRequest(TimedRequest, frozen=True, kw_only=True):
    """One value an axis. ``max_steps``: 0 for until all requests have ended."""

    mode: Annotated[
        Mode,
        Flag(
            f"Times, or what else is counted: {', '.join(_MODES)}.",
            section="Options",
            is_main=True,
            metavar="MODE",
            choices=_MODES,
        ),
    ] = "timing"
    max_steps: Annotated[
        int,
        Flag(
            "End after N steps.  [default: when all requests have ended]",
            section="Options",
            is_main=True,
            metavar="N",
            least=0,
            most=10**9,
        ),
    ] = 0


def run_cell(request: RunRequest, caller: Caller) -> RunResult:
    """Run the cell once, in a fresh interpreter. Raises ValueError for what cannot be run."""
    session = Session(request, caller)
    runner = session.runner
    with caller.progress(1, []) as progress:
        name, outcome = runner.run_one(
            session.cell, request.mode, request.max_steps, progress.wait_for
        )
    result = RunResult(
        **session.about(name),
        notes=[*session.notes, *runner.lease.notes],
        trial=outcome if isinstance(outcome, TrialResult) else None,
        failure="" if isinstance(outcome, TrialResult) else outcome.reason,
    )
    keep_result(request.output, result)
    return result

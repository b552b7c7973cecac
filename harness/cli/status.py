"""What a gate and a night exit with, by what they found; other kinds leave it to the command."""

from harness.cli.exit_codes import ExitCode
from harness.tracking.gate.result import GateResult
from harness.tracking.nightly.result import NightlyResult


def gate_status(result: GateResult) -> ExitCode:
    """What a gate comes to."""
    if not result.is_complete:
        return ExitCode.INTERRUPTED
    if result.verdict in ("worse", "trade"):
        return ExitCode.WORSE
    is_known = not result.missing and result.verdict != "not covered"
    return ExitCode.MEASURED if is_known else ExitCode.NOT_MEASURED


def nightly_status(result: NightlyResult) -> ExitCode:
    """What a night comes to."""
    if not result.is_complete:
        return ExitCode.INTERRUPTED
    if result.has_regression:
        return ExitCode.WORSE
    incomplete = result.missing or any(each.reason for each in result.measured)
    is_told = result.is_judged and not incomplete and not result.unsettled
    return ExitCode.MEASURED if is_told else ExitCode.NOT_MEASURED


def status_of(result: object) -> ExitCode | None:
    """What the command that made a result exits with, where that is a part of the answer."""
    if isinstance(result, GateResult):
        return gate_status(result)
    return nightly_status(result) if isinstance(result, NightlyResult) else None

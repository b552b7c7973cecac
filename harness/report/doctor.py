"""The doctor's report: what would spoil a measurement, and what to do about it."""

from harness.experiment.doctor_result import DoctorResult
from harness.machine.doctor import DoctorFinding
from harness.render.report import Report, remarks

_SIGNS = {"ok": "✓", "warn": "!", "bad": "✗"}


def describe_doctor(result: DoctorResult) -> Report:
    """Each finding with what to do about it, and how many of each kind there are."""
    levels = [finding.level for finding in result.findings]
    found = [(f"{_SIGNS[each.level]} {each.what}", _words(each)) for each in result.findings]
    return Report(
        heading="gcbench doctor",
        name=result.name,
        answer=f"{levels.count('bad')} bad, {levels.count('warn')} to watch",
        short=found,
        sentences=[f"{what}: {words}" for what, words in found],
        lists=remarks(result),
        command=result.command,
    )


def _words(finding: DoctorFinding) -> str:
    return finding.detail + (f" → {finding.advice}" if finding.advice else "")

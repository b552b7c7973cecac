"""What ``gcbench doctor`` answers, for programs."""

from harness.machine.doctor import DoctorFinding
from harness.result.result import Result


class DoctorResult(Result, frozen=True, kw_only=True, tag="doctor"):
    """What would spoil a measurement, of this machine or of each node of a cluster."""

    findings: list[DoctorFinding]

"""What `gcbench run` has measured: one trial by itself."""

from harness.result.result import Result
from harness.trial.spec import TrialResult


class RunResult(Result, frozen=True, kw_only=True, tag="run"):
    """``trial``: None where it gave nothing, and ``failure`` says why in a sentence."""

    trial: TrialResult | None
    failure: str = ""

"""What a night has to say: what was measured, what changed, and what is left to be told."""

from typing import Any, Literal

import msgspec

from harness.result.result import Result
from harness.tracking.detect.change import Certainty, StepVerdict
from harness.tracking.triage import Status
from harness.tracking.verdict import Word

StepSide = Literal["before", "open", "after"]


class MeasuredCommit(msgspec.Struct, frozen=True, kw_only=True):
    """A commit that this run has tried; ``reason`` is "" where it was measured."""

    commit: str
    subject: str
    seconds: float
    reason: str = ""


class ChangedSeries(msgspec.Struct, frozen=True, kw_only=True):
    """One series that has changed. Levels in the metric's unit; ``ratio`` None where none is.

    ``stands``: the verdict on the series today, all its news taken together. ``is_regression``:
    whether this change has made it worse, and nobody has said a word of it.
    """

    machine: str
    environment: str
    series: str
    metric: str
    unit: str
    kind: Literal["exact", "timing"]
    verdict: StepVerdict
    certainty: Certainty
    before: float
    after: float
    ratio: float | None
    ci95: tuple[float, float] | None
    status: Status
    reason: str
    stands: Word
    is_regression: bool


class Suspect(msgspec.Struct, frozen=True, kw_only=True):
    """A commit that may have made a change."""

    commit: str
    subject: str


class StepPoint(msgspec.Struct, frozen=True, kw_only=True):
    """A commit's value near a step; "open" are those of which some may have been made after it."""

    commit: str
    value: float
    interval: tuple[float, float] | None
    side: StepSide


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """All that changed with one commit.

    ``plausible``: the commits that may be it, oldest first, of which ``commit`` is the likeliest;
    ``last_before``: the commit before them all. ``first_named``: what was said on the night it was
    found, empty where that is the same. ``environment``: sentences on what else differs between
    the two measurements. ``command``: commands that show it once more. ``around``: the series of
    the first change near its step, the oldest commit first; empty in files of older nights.
    """

    commit: str
    subject: str
    last_before: str
    plausible: list[Suspect]
    first_named: list[str]
    changes: list[ChangedSeries]
    environment: list[str]
    command: list[str]
    around: list[StepPoint] = []

    @property
    def is_regression(self) -> bool:
        """Whether something became worse, and nobody has said a word of it yet."""
        return any(each.is_regression for each in self.changes)


class NightlyResult(Result, frozen=True, kw_only=True, tag="night"):
    """Everything a night knows at its end.

    ``verdicts``: how many series have each. ``triaged``: how many that are worse the triage file
    speaks of. ``unsettled``: how many have become worse and, it may be, better again.
    Not ``is_complete``: interrupted before all was measured.
    """

    asv_machine: str
    measured: list[MeasuredCommit]
    alerts: list[Alert]
    suspicious: list[ChangedSeries]
    verdicts: dict[Word, int]
    triaged: int
    unsettled: int
    reruns: int
    dashboard: str
    missing: list[str]
    problems: list[str]
    hardware: dict[str, Any]
    started: str

    @property
    def has_regression(self) -> bool:
        """Whether an alert is one."""
        return any(alert.is_regression for alert in self.alerts)

    @property
    def is_judged(self) -> bool:
        """Whether there is a series with points enough to tell a change from none."""
        return any(number for word, number in self.verdicts.items() if word != "insufficient")

"""What changed in stored results, series by series, as it is shown and written."""

from math import isfinite

import msgspec

from harness.result.result import Result
from harness.tracking.verdict import Word


class Read(msgspec.Struct, frozen=True, kw_only=True):
    """What was read. ``first``, ``last``: the commits' dates, "" for none; ``outdated``: figures of
    benchmarks as they were before; ``trials`` gave a result, ``failures`` none.
    """

    commits: int = 0
    first: str = ""
    last: str = ""
    machines: list[str] = []
    environments: list[str] = []
    figures: int = 0
    outdated: int = 0
    trials: int = 0
    failures: int = 0
    experiments: int = 0


class SeriesChange(msgspec.Struct, frozen=True, kw_only=True):
    """One series' figures at two commits, None where it has none, and the verdict on its history.

    ``unit``: as asv names it. ``suspects``: commits one of which made the change, where that is not
    known.
    """

    machine: str
    environment: str
    series: str
    suite: str
    metric: str
    unit: str
    direction: str
    kind: str
    parameters: dict[str, str | int | float]
    base: str
    head: str
    before: float | None
    after: float | None
    verdict: Word
    suspects: list[str]

    @property
    def ratio(self) -> float | None:
        """After / before, None where that is no number."""
        if self.before is None or self.after is None:
            return None
        if not self.before:
            return 1.0 if not self.after else None
        ratio = self.after / self.before
        return ratio if isfinite(ratio) else None


class HistoryResult(Result, frozen=True, kw_only=True, tag="history"):
    """What changed between two commits, or the last two of each series where ``between`` is None.

    ``problems``: a sentence for each thing that could not be read.
    """

    between: tuple[str, str] | None
    read: Read
    changes: list[SeriesChange]
    problems: list[str]

    @property
    def is_compared(self) -> bool:
        """Whether any series has a figure on both sides."""
        return any(each.verdict != "missing" for each in self.changes)

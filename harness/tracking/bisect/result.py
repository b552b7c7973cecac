"""What a bisection answers: the commit, the figures beside it, and all that was measured."""

from typing import Literal

import msgspec

from harness.explain.largest_changes import LargestChange
from harness.result.result import Result
from harness.tracking.bisect.search import CommitVerdict

Conclusion = Literal["found", "several", "gradual", "same", "unmeasured", "interrupted"]
"""``several``: those between cannot be run. ``gradual``: no commit's own change is worth naming.
``same``: GOOD and BAD do not differ. ``unmeasured``: GOOD or BAD gave no figure.
"""


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A commit by its hash, or a release by its version; of a release nothing else is known.

    ``date``: the author's, YYYY-MM-DD.
    """

    id: str
    subject: str = ""
    author: str = ""
    date: str = ""

    @property
    def label(self) -> str:
        """The version, or the hash in short."""
        return self.id[:10] if len(self.id) >= 40 else self.id


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate that was measured, or why it could not be; ``good``: nearer to GOOD than BAD."""

    candidate: Candidate
    figure: float | None
    verdict: CommitVerdict
    reason: str = ""


class BisectResult(Result, frozen=True, kw_only=True, tag="bisect"):
    """Everything `bisect` knows at its end.

    ``good`` and ``bad`` as they were asked for. ``num_commits``: after GOOD up to BAD, or releases,
    by ``candidate_kind``; ``num_candidates``: those that change ``package``. ``suspects``: among
    which the culprit is, oldest first, one where it is found; ``before`` and ``after``: figures on
    either side of them. ``functions``: by which the versions on either side differ most, whatever
    the metric is. ``measured``: in the order of history. ``explain``: the command that says what
    else the culprit changes; ``rest``: commands that search for other commits that moved the
    metric.
    """

    candidate_kind: Literal["commit", "release"]
    package: str
    metric: str
    unit: str
    direction: Literal["higher", "lower", "neither"]
    good: str
    bad: str
    conclusion: Conclusion
    num_commits: int
    num_candidates: int
    suspects: list[Candidate]
    before: float | None
    after: float | None
    functions: list[LargestChange]
    measured: list[Measured]
    explain: str
    rest: list[str]
    axes: dict[str, str | int]

"""What a detector says."""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

from harness.tracking.detect.series import Series

StepVerdict = Literal["worse", "better", "changed"]
Certainty = Literal["found", "confirmed", "suspected", "machine"]
"""found: by the nights alone. confirmed: with the help of a re-run. suspected: neither yet.
machine: the nights differ, but the same commits side by side do not."""

_LEAST_ERROR = 0.003
"""An interval much narrower than two processes differ by would be believed too much."""


class Rerun(NamedTuple):
    """Two commits measured side by side, interleaved: after / before, with its 95 % interval.

    ``newest``: the newest commit there was then, "" where that is ``after``.
    """

    before: str
    after: str
    ratio: float
    ci95: tuple[float, float]
    newest: str = ""

    @property
    def log(self) -> tuple[float, float]:
        """Log ratio and its standard error. Raises ValueError where there is none."""
        low, high = self.ci95
        if not (0 < low <= self.ratio <= high < math.inf):
            raise ValueError(
                f"the re-run of {self.before[:12]} and {self.after[:12]} has a ratio of "
                f"{self.ratio:g} ({low:g} to {high:g}), which is none; run it again"
            )
        return math.log(self.ratio), max(
            (math.log(high) - math.log(low)) / (2 * 1.96), _LEAST_ERROR
        )


@dataclass(frozen=True, slots=True)
class Change:
    """A step between two neighbouring points, as known on the night ``found``.

    ``plausible`` holds the commits that may have made it, oldest first, of which ``first_after``
    is the likeliest and ``place`` the index of its point; ``last_before`` is the commit before
    them all. These follow what later nights and re-runs know; ``named`` is what ``plausible``
    held on the night ``found``, as all the figures are. ``next_pair`` are the two commits whose
    re-run would tell most: of a suspicion whether it is one, else which commit it is; None where
    that is known. ``before`` and ``after`` are levels. ``p`` is two-sided and of this place alone,
    not corrected for the search.
    """

    series: str
    metric: str
    last_before: str
    first_after: str
    place: int
    found: int
    plausible: tuple[str, ...]
    named: tuple[str, ...]
    next_pair: tuple[str, str] | None
    before: float
    after: float
    ratio: float
    ci95: tuple[float, float]
    p: float
    verdict: StepVerdict
    certainty: Certainty

    @property
    def is_alert(self) -> bool:
        """Whether it is certain, and the code's."""
        return self.certainty in ("found", "confirmed")


@dataclass(frozen=True, slots=True)
class Findings:
    """Everything about one series. ``level`` and ``noise`` (relative) are those of today.

    ``is_enough``: whether there are points enough to tell a change from none. ``resets``: points
    at which a level began by decree. ``drift``: how far it has drifted where that is no one
    commit's doing, else "".
    """

    is_enough: bool
    changes: tuple[Change, ...]
    level: float
    noise: float
    notes: tuple[str, ...]
    resets: tuple[int, ...] = ()
    drift: str = ""


def verdict(series: Series, before: float, after: float) -> StepVerdict:
    """By the metric's own direction."""
    if series.direction == "neither":
        return "changed"
    return "better" if (after > before) == (series.direction == "higher") else "worse"

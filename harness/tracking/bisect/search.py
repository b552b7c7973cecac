"""What to measure next, and among which commits the culprit lies: no git, no measuring."""

from dataclasses import dataclass, field
from typing import Literal

CommitVerdict = Literal["good", "bad", "cannot run"]


@dataclass(slots=True)
class Search:
    """A binary search over positions in a line of commits, of which ``good`` < ``bad`` are known.

    All before ``good`` count as good and all after ``bad`` as bad. ``skipped``: those between that
    could not be measured.
    """

    good: int
    bad: int
    skipped: set[int] = field(default_factory=set)

    @property
    def next(self) -> int | None:
        """The position to measure next, None where there is nothing left to learn.

        The middle, or else its neighbours 1, 2, 4, … positions away, so that a few commits that
        cannot run cost little. Where none of those can run there may be a long stretch of them,
        whose ends are looked for by halving what is left before and after it; in the end all
        others, the nearest first.
        """
        middle = (self.good + self.bad) // 2

        def distance(position: int) -> int:
            return abs(position - middle)

        near = [each for each in self._open if distance(each) & (distance(each) - 1) == 0]
        if near:
            return min(near, key=distance)
        if not self._skipped_between:
            return None
        before = range(self.good + 1, min(self._skipped_between))
        after = range(max(self._skipped_between) + 1, self.bad)
        widest = max(before, after, key=len)
        if widest:
            return widest[len(widest) // 2]
        return min(self._open, key=distance, default=None)

    @property
    def steps_left(self) -> int:
        """How many measurements it takes from here, if all can be run."""
        return len(self._open).bit_length()

    @property
    def suspects(self) -> range:
        """The positions among which the culprit is."""
        return range(self.good + 1, self.bad + 1)

    def tell(self, position: int, verdict: CommitVerdict) -> None:
        """What was found at a position between ``good`` and ``bad``."""
        if verdict == "good":
            self.good = position
        elif verdict == "bad":
            self.bad = position
        else:
            self.skipped.add(position)

    @property
    def _skipped_between(self) -> set[int]:
        """Positions among the suspects that could not be measured."""
        return {position for position in self.skipped if self.good < position < self.bad}

    @property
    def _open(self) -> list[int]:
        between = range(self.good + 1, self.bad)
        return [position for position in between if position not in self.skipped]

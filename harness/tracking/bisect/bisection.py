"""Measures both ends, then searches between them; each tree is measured once."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from harness.metrics import Metric
from harness.tracking.bisect.result import Candidate, Conclusion, Measured
from harness.tracking.bisect.search import CommitVerdict, Search


class CountedFigure(NamedTuple):
    """A metric's figure, or why there is none."""

    value: float | None
    reason: str = ""


class Bisection:
    """A search for the candidate with which ``metric`` moved; it can be asked at any moment.

    ``candidates``: from GOOD to BAD, at least these two. ``tree_of`` says what is measured of one:
    those of the same tree share a measurement. ``measure(candidate, left)`` measures one;
    ``left``: about how many come after it.
    """

    def __init__(
        self,
        candidates: Sequence[Candidate],
        metric: Metric,
        tree_of: Callable[[Candidate], str],
        measure: Callable[[Candidate, int], CountedFigure],
    ) -> None:
        self.candidates = candidates
        self.search = Search(0, len(candidates) - 1)
        self.figures: dict[int, CountedFigure] = {}
        self._ends = (0, len(candidates) - 1)
        self._metric, self._tree_of, self._measure = metric, tree_of, measure
        self._by_tree: dict[str, CountedFigure] = {}

    def run(self) -> None:
        """Search to the end. What was found before an exception stays."""
        for end, left in zip(self._ends, (1, 0), strict=True):
            if self._look(end, left + self.search.steps_left).value is None:
                return
        if not self.differ(*self._ends):
            return
        while (position := self.search.next) is not None:
            figure = self._look(position, self.search.steps_left - 1)
            self.search.tell(position, self._verdict(figure))

    def differ(self, first: int, second: int) -> bool:
        """Whether the metric changes by enough to speak of between two measured positions."""
        before, after = (self.figures[position].value for position in (first, second))
        return before is not None and after is not None and self._metric.differs(before, after)

    @property
    def conclusion(self) -> Conclusion:
        """What there is to say so far."""
        ends = [self.figures[position] for position in self._ends if position in self.figures]
        if any(figure.value is None for figure in ends):
            return "unmeasured"
        if len(ends) < 2:
            return "interrupted"
        if not self.differ(*self._ends):
            return "same"
        if self.search.next is not None:
            return "interrupted"
        if not self.differ(self.search.good, self.search.bad):
            return "gradual"
        return "several" if len(self.search.suspects) > 1 else "found"

    @property
    def measured(self) -> list[Measured]:
        """All that was measured, in the order of history."""
        return [
            Measured(
                candidate=self.candidates[position],
                figure=figure.value,
                verdict=self._verdict(figure),
                reason=figure.reason,
            )
            for position, figure in sorted(self.figures.items())
        ]

    def _look(self, position: int, left: int) -> CountedFigure:
        candidate = self.candidates[position]
        tree = self._tree_of(candidate)
        if tree not in self._by_tree:
            self._by_tree[tree] = self._measure(candidate, left)
        self.figures[position] = self._by_tree[tree]
        return self.figures[position]

    def _verdict(self, figure: CountedFigure) -> CommitVerdict:
        if figure.value is None:
            return "cannot run"
        good, bad = (self.figures.get(position, figure).value for position in self._ends)
        if good is None or bad is None:
            return "good"  # it is the only end that could be measured
        return "bad" if abs(figure.value - bad) < abs(figure.value - good) else "good"

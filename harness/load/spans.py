"""Spans of time that do not overlap, and how much of other ones they cover."""

from typing import NamedTuple

import numpy as np

from engines.protocol import Int64Array


class Spans(NamedTuple):
    """Begins and ends in their order; int64 arrays ``[num_spans]``, nanoseconds of one clock.

    What is asked of it is asked of many intervals at once, ``(begin, end]``.
    """

    start: Int64Array
    end: Int64Array

    @property
    def length(self) -> Int64Array:
        """Of each."""
        return self.end - self.start

    def overlap(self, begin: Int64Array, end: Int64Array) -> Int64Array:
        """For how long spans lasted in each interval."""
        return self._until(end) - self._until(begin)

    def ended_within(self, begin: Int64Array, end: Int64Array, slack: Int64Array) -> Int64Array:
        """The length of the spans that ended in each interval, from ``slack`` before it on."""
        first, behind = np.searchsorted(self.end, (begin, end), "right")
        found = self._sum_of_first(behind) - self._sum_of_first(first)
        if not len(self.start):
            return found
        cut = begin - slack - self.start[np.minimum(first, len(self.start) - 1)]
        return np.where(behind > first, found - np.maximum(0, cut), 0)

    def times_ended_in(self, begin: Int64Array, end: Int64Array) -> Int64Array:
        """In how many of the intervals each span ended, int64 ``[num_spans]``."""
        first, behind = np.searchsorted(self.end, (begin, end), "right")
        size = len(self.end) + 1
        counts = np.bincount(first, minlength=size) - np.bincount(behind, minlength=size)
        return counts.cumsum()[:-1]

    def without(self, other: "Spans") -> "Spans":
        """What of these is in no span of the other, cut at most once: from a begin or to an end."""
        left = self.length - other.overlap(self.start, self.end)
        return Spans(self.end - left, self.end)

    def _until(self, moment: Int64Array) -> Int64Array:
        """How long spans have lasted until then."""
        begun = np.searchsorted(self.start, moment, "right")
        if not len(self.start):
            return np.zeros_like(moment)
        still = np.maximum(0, self.end[np.maximum(begun - 1, 0)] - moment)
        return self._sum_of_first(begun) - np.where(begun > 0, still, 0)

    def _sum_of_first(self, number: Int64Array) -> Int64Array:
        sums: Int64Array = np.concatenate([np.zeros(1, np.int64), self.length.cumsum()])[number]
        return sums


def spans_of(start: Int64Array, end: Int64Array) -> Spans:
    """Any spans, in their order, those that overlap as one."""
    if not len(start):
        return Spans(start, end)
    order = np.argsort(start, kind="stable")
    start, until = start[order], np.maximum.accumulate(end[order])
    is_first = np.concatenate([[True], start[1:] > until[:-1]])
    return Spans(start[is_first], until[np.concatenate([is_first[1:], [True]])])

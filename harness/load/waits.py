"""How long streams waited for tokens, and which waits are longer than is ordinary for them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engines.protocol import Int64Array
from harness.load.observed import Observed

FEWEST_GAPS = 20
"""A stream of fewer is judged by the gaps of all streams."""
LEAST_SLACK_NS = 1_000_000
"""What a client process needs for the chunks of a step of some 200 streams."""
DEVIATIONS = 5
"""Median absolute deviations; of normal noise 0.07 % of the waits are beyond so many."""


class Waits(NamedTuple):
    """Waits of completed requests for a token; arrays ``[num_waits]``, nanoseconds.

    ``is_first``: from sending to the first delivery; all others are gaps between two deliveries.
    ``usual_ns``: the median gap of the stream, or of all first tokens. A wait is slow beyond
    ``usual_ns + slack_ns``.
    """

    request: Int64Array
    began_ns: Int64Array
    ended_ns: Int64Array
    is_first: NDArray[np.bool_]
    usual_ns: Int64Array
    slack_ns: Int64Array

    @property
    def length_ns(self) -> Int64Array:
        """Of each."""
        return self.ended_ns - self.began_ns

    @property
    def excess_ns(self) -> Int64Array:
        """By how much each is longer than usual."""
        return self.length_ns - self.usual_ns

    @property
    def is_slow(self) -> NDArray[np.bool_]:
        """Which are longer than is ordinary."""
        slow: NDArray[np.bool_] = self.excess_ns > self.slack_ns
        return slow

    def only(self, chosen: NDArray[np.bool_]) -> "Waits":
        """Some of them."""
        columns = {name: column[chosen] for name, column in self._asdict().items()}
        return Waits(**columns)


def waits_of(observed: Observed) -> Waits:
    """First tokens and then gaps, each by the order of requests."""
    responses = observed.responses
    counts = responses.num_deliveries
    completed = responses.completed & (counts > 0)
    whose = np.repeat(np.arange(len(counts)), counts)
    moments = responses.delivered_ns
    is_gap = (whose[1:] == whose[:-1]) & completed[whose[1:]]
    gap_begins, gap_ends, gap_of = moments[:-1][is_gap], moments[1:][is_gap], whose[1:][is_gap]
    first_of = np.flatnonzero(completed)
    first_begins = observed.recording.sent_ns[first_of]
    first_ends = moments[(np.cumsum(counts) - counts)[first_of]]
    firsts = _ordinary(first_ends - first_begins, np.zeros(len(first_of), np.int64))
    gaps = _ordinary_gaps(gap_ends - gap_begins, gap_of)
    return Waits(
        np.concatenate([first_of, gap_of]),
        np.concatenate([first_begins, gap_begins]),
        np.concatenate([first_ends, gap_ends]),
        np.repeat([True, False], [len(first_of), len(gap_of)]),
        *(np.concatenate(both) for both in zip(firsts, gaps, strict=True)),
    )


def _ordinary_gaps(gaps: Int64Array, stream: Int64Array) -> tuple[Int64Array, Int64Array]:
    usual, slack = _ordinary(gaps, stream)
    pooled_usual, pooled_slack = _ordinary(gaps, np.zeros_like(stream))
    is_short = (np.bincount(stream) < FEWEST_GAPS)[stream] if len(stream) else stream > 0
    return np.where(is_short, pooled_usual, usual), np.where(is_short, pooled_slack, slack)


def _ordinary(values: Int64Array, group: Int64Array) -> tuple[Int64Array, Int64Array]:
    """The median and the slack of each value's group, int64."""
    if not len(values):
        return values, values
    median = _medians(values, group)[group]
    spread = _medians(np.abs(values - median), group)[group]
    return median, np.maximum(LEAST_SLACK_NS, DEVIATIONS * spread)


def _medians(values: Int64Array, group: Int64Array) -> Int64Array:
    """By number of the group; the lower of two in the middle, 0 for a group without a value."""
    counts = np.bincount(group)
    middle = np.cumsum(counts) - counts + np.maximum(counts - 1, 0) // 2
    ordered: Int64Array = values[np.lexsort((values, group))]
    return np.where(counts, ordered[np.minimum(middle, len(values) - 1)], 0)

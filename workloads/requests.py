"""Requests as columns, on the way from a recipe or a trace to a schedule."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Int32Array = NDArray[np.int32]
Int64Array = NDArray[np.int64]

GROUP_STREAMS = 2**31
"""Groups of a shared prefix draw from streams of this number on; requests' own are below."""

TRACE_STREAMS = 2**32
"""Blocks of a trace draw from streams of this number on."""


class Segments(NamedTuple):
    """Which streams the prompts' tokens are of; all empty where each prompt has one of its own.

    ``counts`` int32 ``[N]``: segments of each prompt. ``streams`` int64 ``[S]``, ``lens`` int32
    ``[S]``: a segment is the first ``lens`` tokens of its stream.
    """

    counts: Int32Array
    streams: Int64Array
    lens: Int32Array

    def starts(self) -> Int64Array:
        """Where each prompt's segments begin, int64 ``[N]``."""
        return np.cumsum(self.counts, dtype=np.int64) - self.counts


NO_SEGMENTS = Segments(np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, np.int32))


def own_streams(prompt_lens: Int32Array) -> Segments:
    """Each prompt a stream by the number of its request: what `NO_SEGMENTS` stands for."""
    n = len(prompt_lens)
    return Segments(np.ones(n, np.int32), np.arange(n, dtype=np.int64), prompt_lens)


class Requests(NamedTuple):
    """Requests in order of arrival.

    ``prompt_lens``, ``output_lens`` int32 ``[N]`` tokens, ``arrival_seconds`` float64 ``[N]``.
    ``previous_turn`` int32 ``[N]``: the request whose end each waits for, or -1; empty where none
    waits. ``bad_rows``: rows of a trace that were left out.
    """

    prompt_lens: Int32Array
    output_lens: Int32Array
    arrival_seconds: NDArray[np.float64]
    segments: Segments = NO_SEGMENTS
    previous_turn: Int32Array = NO_SEGMENTS.counts
    bad_rows: int = 0

"""Runs under load that never were: streams in step, tokens that come late, pauses."""

import numpy as np
from small import schedule

from engines.openai.capture import Recording
from engines.openai.outcome import Outcome
from engines.openai.response import CountSource
from engines.openai.responses import Responses
from harness.load.observed import Observed
from harness.load.task import Asked
from harness.probed.read_log import Collections

MS = 1_000_000
STEP, STREAMS, TOKENS = 20 * MS, 8, 60
CORE, WORKER = 7, 8
NONE = np.zeros(0, np.int64)


def run(late_ms, *, late_streams=(), stops=(), clients=1):
    """Streams in step, whose token of a number comes later than usual by so many milliseconds.

    ``late_streams`` are sent when the others have ended, and begin 50 ms later than these did.
    """
    lengths = np.full(TOKENS, STEP)
    for token, milliseconds in late_ms.items():
        lengths[token] += int(milliseconds * MS)
    is_late = np.isin(np.arange(STREAMS), late_streams)
    sent = 10**9 + 2 * 10**9 * is_late
    begun = (sent + 50 * MS * is_late)[:, None]
    moments = begun + lengths.cumsum() + np.arange(STREAMS)[:, None] * 1000
    counts = np.full(STREAMS, TOKENS)
    outcome = np.full(STREAMS, Outcome.COMPLETED, np.int8)
    none = np.zeros(0, np.uint8)
    return Observed(
        schedule=schedule([TOKENS] * STREAMS),
        start_ns=10**9,
        asked=Asked(urls=["http://h"], model="m", client_processes=clients),
        recording=Recording(
            sent,
            sent,
            moments[:, -1],
            outcome,
            counts.astype(np.int32),
            NONE,
            NONE.astype(np.int32),
            NONE,
            none,
        ),
        responses=Responses(
            outcome,
            np.ones(STREAMS, np.int8),
            counts,
            np.full(STREAMS, CountSource.USAGE, np.int8),
            counts,
            counts,
            counts,
            moments[:, 0],
            counts * 0,
            counts * 0,
            moments.ravel(),
            NONE.astype(np.int32),
            none,
            {},
        ),
        clients=[],
        deaths=[],
        scrapes=[],
        stops=stops,
    )


def moment(observed, token):
    """When that token came to the first stream."""
    return int(observed.responses.delivered_ns[token])


def collections(*pauses):
    """Of (PID, start, milliseconds)."""
    columns = np.array([(pid, start, int(ms * MS), 0, 2) for pid, start, ms in pauses], np.int64)
    names = {CORE: "core", WORKER: "worker"}
    lost = np.zeros((0, 2), np.int64)
    return Collections("b", 0, 10**12, names, {}, lost, *columns.reshape(-1, 5).T)

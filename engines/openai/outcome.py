"""How a request over HTTP can end: one list, in whose terms failures are counted."""

from enum import IntEnum


class Outcome(IntEnum):
    """Every request has one at the end, so that they add up to the requests that were asked."""

    UNSENT = 0
    COMPLETED = 1
    REFUSED = 2
    TLS_ERROR = 3
    RESET = 4
    CLOSED_EARLY = 5
    TIMED_OUT = 6
    RATE_LIMITED = 7
    CLIENT_ERROR = 8
    SERVER_ERROR = 9
    OTHER_STATUS = 10
    MALFORMED = 11
    INTERRUPTED = 13
    CLIENT_DIED = 14
    CUT_OFF = 15
    CONTEXT_FULL = 16
    EMPTY = 17


OUTCOME_MEANINGS = {
    Outcome.UNSENT: "never sent",
    Outcome.COMPLETED: "answered to the end, with a finish reason of a whole answer",
    Outcome.REFUSED: "no connection: refused, or no route to the server",
    Outcome.TLS_ERROR: "no connection: the TLS handshake failed",
    Outcome.RESET: "the connection was reset, or closed before an answer began",
    Outcome.CLOSED_EARLY: "the connection was closed within an answer, or the answer has no finish "
    "reason",
    Outcome.TIMED_OUT: "no end within --request-timeout",
    Outcome.RATE_LIMITED: "status 429",
    Outcome.CLIENT_ERROR: "another status 4xx",
    Outcome.SERVER_ERROR: "status 5xx, an error in the stream, or a finish reason error",
    Outcome.OTHER_STATUS: "a status that is neither 2xx, 4xx nor 5xx",
    Outcome.MALFORMED: "not HTTP, not server-sent events, or not the JSON of the OpenAI API",
    Outcome.INTERRUPTED: "under way when the run was interrupted",
    Outcome.CLIENT_DIED: "of a client process that died",
    Outcome.CUT_OFF: "the server cut it off: no finish reason of a whole answer, as abort",
    Outcome.CONTEXT_FULL: "answered to the end of the server's context, or of what it allows: "
    "finish reason length with fewer tokens than were asked",
    Outcome.EMPTY: "answered to the end without a token",
}

WHOLE = (Outcome.COMPLETED, Outcome.CONTEXT_FULL)
"""Answered to the end: of these are all figures."""

NOT_ATTEMPTED = (Outcome.UNSENT, Outcome.INTERRUPTED, Outcome.CLIENT_DIED)
"""Of requests to whose end the server had no chance."""


def of_status(status: int) -> Outcome:
    """That of an HTTP status other than 2xx."""
    if status == 429:
        return Outcome.RATE_LIMITED
    if 400 <= status < 500:
        return Outcome.CLIENT_ERROR
    return Outcome.SERVER_ERROR if 500 <= status < 600 else Outcome.OTHER_STATUS

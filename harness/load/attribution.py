"""Whose pause made a stream wait: collections of the server, the client's own, or neither.

A slow wait is a process's if, without the pauses of that process that ended in it, it would have
been of ordinary length, or at least four fifths of what it was longer than usual were they. That a
pause lies in a wait is not enough.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from engines.protocol import Int64Array
from harness.load.deal import dealt
from harness.load.observed import Observed
from harness.load.spans import Spans, spans_of
from harness.load.waits import Waits, waits_of
from harness.probed.read_log import Collections

SERVER, CLIENT, LATE, SEVERAL, REST = (
    "server collector",
    "client collector",
    "client lag",
    "several together",
    "rest",
)
FELT_SHARE = 0.02
"""A pause is felt if it made so many of the streams wait that were waiting at its end."""
FELT_LEAST = 0.5
"""Of a process's long pauses, by length: with less felt, it is not on the way of tokens."""
MOST_OF_IT = 0.8
MOST_PAUSES = 50


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """What made slow waits. ``*_seconds``: by how much they were longer than usual, all together;
    ``*_share``: of that time of all slow ones, None where there is none. ``pauses``: that ended in
    them. ``pid`` and ``process`` of a server's; of a client ``process`` is its number.
    """

    cause: str
    process: str = ""
    pid: int = 0
    gaps: int
    gap_seconds: float
    gap_share: float | None
    first_tokens: int
    first_token_seconds: float
    first_token_share: float | None
    pauses: int


class LongPause(msgspec.Struct, frozen=True, kw_only=True):
    """A collection of the server for which streams waited."""

    process: str
    pid: int
    generation: int
    start_ns: int
    seconds: float
    gaps: int
    first_tokens: int
    python: str = ""


class OnTheWay(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a process's pauses stop streams: ``felt``, the share of the time in its long pauses
    that streams waited for, None without a long pause while streams waited.
    """

    process: str
    pid: int
    collections: int
    pause_seconds: float
    long_pauses: int
    felt: float | None
    is_charged: bool


class Attribution(msgspec.Struct, frozen=True, kw_only=True):
    """Every slow wait of a run has one cause of ``causes``, the largest first, the rest last.

    ``slack_seconds``: by how much a gap may be longer than usual, the median over streams.
    ``pauses``: those for which streams waited longest. ``lost``: collections whose moment is not
    known.
    """

    num_gaps: int
    slow_gaps: int
    num_first_tokens: int
    slow_first_tokens: int
    slack_seconds: float
    causes: list[Cause]
    pauses: list[LongPause]
    processes: list[OnTheWay]
    lost: int


class SlowWaits(NamedTuple):
    """The slow waits of a run; ``cause``: the place of each in `Attribution.causes`."""

    waits: Waits
    cause: Int64Array


class _Source(NamedTuple):
    cause: str
    process: str
    pid: int
    spans: Spans
    requests: Int64Array | None
    """Whose waits it can have made; None for all."""


def attribute(observed: Observed, collections: Collections) -> tuple[Attribution, SlowWaits]:
    """What each slow wait of a run is due to."""
    waits = waits_of(observed)
    slow = waits.only(waits.is_slow)
    servers = _servers(collections)
    on_the_way = [_on_the_way(each, waits, collections) for each in servers]
    charged = [each for each, way in zip(servers, on_the_way, strict=True) if way.is_charged]
    sources = [*charged, *_clients(observed)]
    place = _cause_of(slow, sources)
    causes = [
        _cause(place == number, slow, source)
        for number, source in enumerate([*sources, *_NO_PROCESS])
    ]
    order = sorted(range(len(causes)), key=lambda each: _rank(causes[each]))
    order = [each for each in order if causes[each].gaps or causes[each].first_tokens]
    begin = int(waits.began_ns.min()) if len(waits.began_ns) else observed.start_ns
    end = int(waits.ended_ns.max()) if len(waits.ended_ns) else observed.start_ns
    gaps = ~waits.is_first
    attribution = Attribution(
        num_gaps=int(gaps.sum()),
        slow_gaps=int((~slow.is_first).sum()),
        num_first_tokens=int(waits.is_first.sum()),
        slow_first_tokens=int(slow.is_first.sum()),
        slack_seconds=float(np.median(waits.slack_ns[gaps])) / 1e9 if gaps.any() else 0.0,
        causes=[causes[each] for each in order],
        pauses=_longest(collections, slow, place, sources),
        processes=on_the_way,
        lost=collections.lost_between(begin, end),
    )
    places = np.zeros(len(causes), np.int64)
    places[order] = np.arange(len(order))
    return attribution, SlowWaits(slow, places[place])


def _servers(collections: Collections) -> list[_Source]:
    sources = []
    for pid in dict.fromkeys(collections.pid.tolist()):
        own = collections.pid == pid
        start = collections.start_ns[own]
        spans = spans_of(start, start + collections.duration_ns[own])
        sources.append(_Source(SERVER, collections.names.get(pid, "python"), pid, spans, None))
    return sources


def _clients(observed: Observed) -> list[_Source]:
    """Each client process's collector, and its loop where that was late for another reason."""
    sources = []
    for stops in observed.stops:
        own = dealt(observed.schedule, stops.process, observed.asked.client_processes)
        pauses = spans_of(*np.array(stops.pauses, np.int64).reshape(-1, 2).T)
        late = spans_of(*np.array(stops.late, np.int64).reshape(-1, 2).T)
        name = f"client {stops.process}"
        sources.append(_Source(CLIENT, name, 0, pauses, own))
        sources.append(_Source(LATE, name, 0, late.without(pauses), own))
    return sources


_NO_PROCESS = [
    _Source(each, "", 0, spans_of(*np.zeros((2, 0), np.int64)), None) for each in (SEVERAL, REST)
]


def _time_in(source: _Source, waits: Waits) -> Int64Array:
    """For how long of each wait the source stood still, in a way that can have lengthened it.

    Whoever stands still sends nothing. So of a server only pauses count that ended in the wait; and
    they count from their beginning, for the delivery before was sent by then, though its stamp may
    be as late as gaps scatter. A client's loop may be found late just after it took up a piece.
    """
    if source.requests is None:
        found = source.spans.ended_within(waits.began_ns, waits.ended_ns, waits.slack_ns)
    else:
        found = source.spans.overlap(waits.began_ns, waits.ended_ns)
        found = np.where(np.isin(waits.request, source.requests), found, 0)
    return np.minimum(found, waits.length_ns)


def _needed_ns(slow: Waits) -> Int64Array:
    """For how long a process must have stood still to be the cause."""
    enough = (MOST_OF_IT * slow.excess_ns).astype(np.int64)
    needed: Int64Array = np.minimum(slow.excess_ns - slow.slack_ns, enough)
    return needed


def _cause_of(slow: Waits, sources: Sequence[_Source]) -> Int64Array:
    """The place of each wait's cause in ``[*sources, *_NO_PROCESS]``.

    Of several that explain it alone, the one that stood still for longest.
    """
    if not sources:
        return np.full(len(slow.request), 1)
    time_in = np.array([_time_in(each, slow) for each in sources])
    needed = _needed_ns(slow)
    explains = time_in >= needed
    largest: Int64Array = np.where(explains, time_in, -1).argmax(axis=0)
    together = np.where(time_in.sum(axis=0) >= needed, len(sources), len(sources) + 1)
    return np.where(explains.any(axis=0), largest, together)


def _on_the_way(source: _Source, waits: Waits, collections: Collections) -> OnTheWay:
    """Whether streams that waited when a long pause ended had mostly been stopped for so long.

    A process on the way of the tokens of some streams stops these; any other may at most share a
    moment with a wait that something else made.
    """
    gaps = waits.only(~waits.is_first)
    own = source.spans
    slack = float(np.median(gaps.slack_ns)) if len(gaps.slack_ns) else 0.0
    long = Spans(*(each[own.length > 2 * slack] for each in own))
    stopped = gaps.only(gaps.is_slow & (gaps.excess_ns >= MOST_OF_IT * _time_in(source, gaps)))
    num_waiting = long.times_ended_in(gaps.began_ns, gaps.ended_ns)
    num_stopped = long.times_ended_in(stopped.began_ns, stopped.ended_ns)
    lengths = long.length[num_waiting > 0]
    felt = (num_stopped > FELT_SHARE * num_waiting)[num_waiting > 0]
    share = float(lengths[felt].sum() / lengths.sum()) if len(lengths) else None
    return OnTheWay(
        process=source.process,
        pid=source.pid,
        collections=int((collections.pid == source.pid).sum()),
        pause_seconds=float(own.length.sum()) / 1e9,
        long_pauses=len(lengths),
        felt=share,
        is_charged=share is None or share >= FELT_LEAST,
    )


def _cause(chosen: NDArray[np.bool_], slow: Waits, source: _Source) -> Cause:
    excess = slow.excess_ns / 1e9
    ended = source.spans.times_ended_in(slow.began_ns[chosen], slow.ended_ns[chosen])
    figures = {}
    for kind, of_kind in (("gap", ~slow.is_first), ("first_token", slow.is_first)):
        total, own = float(excess[of_kind].sum()), float(excess[of_kind & chosen].sum())
        figures[kind] = int((of_kind & chosen).sum()), own, own / total if total else None
    return Cause(
        cause=source.cause,
        process=source.process,
        pid=source.pid,
        gaps=figures["gap"][0],
        gap_seconds=figures["gap"][1],
        gap_share=figures["gap"][2],
        first_tokens=figures["first_token"][0],
        first_token_seconds=figures["first_token"][1],
        first_token_share=figures["first_token"][2],
        pauses=int((ended > 0).sum()),
    )


def _rank(cause: Cause) -> tuple[bool, float]:
    return cause.cause == REST, -(cause.gap_seconds + cause.first_token_seconds)


def _longest(
    collections: Collections, slow: Waits, place: Int64Array, sources: Sequence[_Source]
) -> list[LongPause]:
    """The server's pauses that made waits, by how long streams waited for them."""
    found = []
    for number, source in enumerate(sources):
        if source.cause != SERVER:
            continue
        own = collections.pid == source.pid
        start, length = collections.start_ns[own], collections.duration_ns[own]
        pauses = Spans(start, start + length)
        gaps, first_tokens = (
            pauses.times_ended_in(each.began_ns, each.ended_ns)
            for each in (
                slow.only((place == number) & (slow.is_first == kind)) for kind in (False, True)
            )
        )
        found += [
            LongPause(
                process=source.process,
                pid=source.pid,
                start_ns=int(start[at]),
                generation=int(collections.generation[own][at]),
                seconds=int(length[at]) / 1e9,
                gaps=int(gaps[at]),
                first_tokens=int(first_tokens[at]),
                python=collections.pythons.get(source.pid, ""),
            )
            for at in np.flatnonzero(gaps + first_tokens).tolist()
        ]
    found.sort(key=lambda each: -each.seconds * (each.gaps + each.first_tokens))
    return found[:MOST_PAUSES]

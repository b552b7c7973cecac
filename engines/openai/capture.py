"""What came back and when: room taken beforehand, filled without an object the collector tracks."""

from array import array
from bisect import bisect_left
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engines.protocol import Int32Array, Int64Array


class Recording(NamedTuple):
    """A run as it crossed the wire; moments are nanoseconds of `time.perf_counter_ns`.

    A request ``[N]``: ``sent_ns`` when it was taken up, ``written_ns`` when its bytes were given to
    the connection, ``ended_ns`` when nothing more was to come (0: it has not happened), ``ended``
    an `Outcome` of the connection's, ``asked`` the output tokens that it may have at most.

    A piece ``[P]``, what the connection brought at once: ``stamp_ns``, ``request``, and ``end``,
    where it ends in ``data``, uint8 ``[B]``, the bytes of all pieces.
    """

    sent_ns: Int64Array
    written_ns: Int64Array
    ended_ns: Int64Array
    ended: NDArray[np.int8]
    asked: Int32Array
    stamp_ns: Int64Array
    request: Int32Array
    end: Int64Array
    data: NDArray[np.uint8]


class Capture:
    """Pieces in the order in which they came: ``append(stamp_ns, request, piece)``.

    ``of(request, since_ns)``: moment and bytes of those that came of one since then.

    Room for ``capacity`` is taken at once and doubled where it is not enough. Numbers go into
    arrays and bytes into the places of a list that is there already.
    """

    def __init__(self, capacity: int) -> None:
        self.append, self._pieces, self.of, self.clear = _recorder(max(16, capacity))

    def pieces(self) -> tuple[Int64Array, Int32Array, Int64Array, NDArray[np.uint8]]:
        """The last four fields of a `Recording`."""
        stamps, requests, pieces = self._pieces()
        lengths = np.fromiter(map(len, pieces), np.int64, len(pieces))
        data = np.frombuffer(b"".join(pieces), np.uint8)
        return stamps, requests, np.cumsum(lengths), data


_Of = Callable[[int, int], list[tuple[int, bytes]]]
_Columns = tuple[Int64Array, Int32Array, list[bytes]]


def _recorder(
    capacity: int,
) -> tuple[Callable[[int, int, bytes], None], Callable[[], _Columns], _Of, Callable[[], None]]:
    """Append, read, read of one, clear. Their variables are cells, as is cheapest in the probe."""
    stamps = array("q", bytes(8 * capacity))
    requests = array("i", bytes(4 * capacity))
    pieces = [b""] * capacity
    count = 0

    def append(stamp_ns: int, request: int, piece: bytes) -> None:
        nonlocal count
        if count == len(pieces):
            stamps.extend(stamps)
            requests.extend(requests)
            pieces.extend(pieces)
        stamps[count] = stamp_ns
        requests[count] = request
        pieces[count] = piece
        count += 1

    def read() -> _Columns:
        return (
            np.array(stamps[:count], np.int64),
            np.array(requests[:count], np.int32),
            pieces[:count],
        )

    def of(request: int, since_ns: int) -> list[tuple[int, bytes]]:
        first = bisect_left(stamps, since_ns, 0, count)
        # A view of it would keep the array from growing, so it goes with this call.
        found = np.flatnonzero(np.frombuffer(requests, np.int32)[first:count] == request)
        return [(stamps[place], pieces[place]) for place in (found + first).tolist()]

    def clear() -> None:
        nonlocal count
        count = 0

    return append, read, of, clear

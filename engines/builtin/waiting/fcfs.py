"""In the order of arrival; one that was preempted goes before all others."""

from collections import deque
from collections.abc import Iterator

from engines.builtin.request_table import Request, RequestTable
from engines.protocol import Int32Array


class FirstComeFirstServed:
    """A queue that preempts whoever was admitted last."""

    def __init__(self) -> None:
        self._queue: deque[Request] = deque()

    def __len__(self) -> int:
        return len(self._queue)

    def __iter__(self) -> Iterator[Request]:
        return iter(self._queue)

    def add_request(self, request: Request) -> None:
        """Queue one that has just arrived."""
        self._queue.append(request)

    def prepend_request(self, request: Request) -> None:
        """Queue one that was preempted."""
        self._queue.appendleft(request)

    def peek_request(self) -> Request:
        """The next one."""
        return self._queue[0]

    def pop_request(self) -> Request:
        """Take the next one."""
        return self._queue.popleft()

    def remove_request(self, request: Request) -> None:
        """Take out one that gives up."""
        self._queue.remove(request)

    @staticmethod
    def victim(running: Int32Array, table: RequestTable) -> int:
        """The last admitted."""
        return int(running[-1])

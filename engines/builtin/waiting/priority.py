"""The smallest priority first, among equals in the order of arrival, preempted or not."""

import heapq
from collections.abc import Iterator

import numpy as np

from engines.builtin.request_table import Request, RequestTable
from engines.protocol import Int32Array


class ByPriority:
    """A heap that preempts whoever it would admit last."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Request]] = []

    def __len__(self) -> int:
        return len(self._heap)

    def __iter__(self) -> Iterator[Request]:
        return (request for _, _, request in sorted(self._heap))

    def add_request(self, request: Request) -> None:
        """Queue one that has just arrived."""
        heapq.heappush(self._heap, (request.priority, request.arrival, request))

    prepend_request = add_request

    def peek_request(self) -> Request:
        """The next one."""
        return self._heap[0][-1]

    def pop_request(self) -> Request:
        """Take the next one."""
        return heapq.heappop(self._heap)[-1]

    def remove_request(self, request: Request) -> None:
        """Take out one that gives up."""
        self._heap.remove((request.priority, request.arrival, request))
        heapq.heapify(self._heap)

    @staticmethod
    def victim(running: Int32Array, table: RequestTable) -> int:
        """The largest priority, among equals the last to arrive."""
        order = np.lexsort((table.arrival[running], table.priority[running]))
        return int(running[order[-1]])

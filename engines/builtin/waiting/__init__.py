"""Who waits for a row and who is served first; one policy a file, behind `RequestQueue`."""

from collections.abc import Iterator
from typing import Protocol

from engines.builtin.request_table import Request, RequestTable
from engines.protocol import Int32Array


class RequestQueue(Protocol):
    """Requests without a row, with the verbs of vLLM's request queues."""

    def __len__(self) -> int:
        """How many wait."""
        ...

    def __iter__(self) -> Iterator[Request]:
        """In the order in which they will be served."""
        ...

    def add_request(self, request: Request) -> None:
        """Queue one that has just arrived."""
        ...

    def prepend_request(self, request: Request) -> None:
        """Queue one that was preempted."""
        ...

    def peek_request(self) -> Request:
        """The next one. Raises IndexError where there is none."""
        ...

    def pop_request(self) -> Request:
        """Take the next one. Raises IndexError where there is none."""
        ...

    def remove_request(self, request: Request) -> None:
        """Take out one that gives up."""
        ...

    def victim(self, running: Int32Array, table: RequestTable) -> int:
        """Which of the ``running`` rows, int32 in the order of admission, to preempt."""
        ...

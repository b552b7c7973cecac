"""A stream for each request, as vLLM's; the client reads its outputs from there."""

from collections.abc import Sequence

from engines.builtin.delivery.collector import RequestOutputCollector
from engines.builtin.delivery.outputs import Output


class RequestStreams:
    """A collector a request. A step then has no outputs of its own, as vLLM's has none."""

    def __init__(self) -> None:
        self._streams: dict[int, RequestOutputCollector] = {}

    def open(self, request_index: int) -> None:
        """Begin a request's."""
        self._streams[request_index] = RequestOutputCollector()

    def put(self, outputs: Sequence[Output]) -> None:
        """Put each output in its stream."""
        streams = self._streams
        for output in outputs:
            streams[output.request_index].put(output)

    def __getitem__(self, request_index: int) -> RequestOutputCollector:
        """A request's. Raises KeyError where it has none."""
        return self._streams[request_index]

    def close(self, request_index: int) -> None:
        """Drop it."""
        self._streams.pop(request_index, None)

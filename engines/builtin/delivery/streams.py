"""A stream a request; each of a step's outputs goes into its own."""

from engines.builtin.delivery import Delivered
from engines.builtin.delivery.collector import RequestOutputCollector
from engines.builtin.delivery.stage import Step, StreamStage
from engines.builtin.request_table import Request


class RequestStreams(StreamStage):
    """A collector a request. A step then has no outputs of its own, as vLLM's has none."""

    needs_objects = True

    def __init__(self) -> None:
        self._streams: dict[int, RequestOutputCollector] = {}

    def admit(self, row: int, request: Request) -> None:
        """Open one."""
        self._streams[request.request_index] = RequestOutputCollector()

    def process(self, step: Step) -> Delivered:
        """Put each output in its stream."""
        streams = self._streams
        for output in step.delivered.outputs:
            streams[output.request_index].put(output)
        return step.delivered._replace(outputs=[])

    def request_stream(self, request_index: int) -> RequestOutputCollector:
        """A request's. Raises KeyError where it has none."""
        return self._streams[request_index]

    def forget(self, request_index: int) -> None:
        """Drop it."""
        self._streams.pop(request_index, None)

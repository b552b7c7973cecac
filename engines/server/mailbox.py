"""The engine core's end of what joins it to the front end: two ZeroMQ sockets, as in vLLM."""

from collections import deque

import zmq

from engines.builtin.output_processing.messages import encode
from engines.server import messages

REQUESTS, OUTPUTS = "requests", "outputs"


class Mailbox:
    """Sorts what comes: output processing asks for its own while requests wait for their turn."""

    def __init__(self, folder: str) -> None:
        self._context = zmq.Context()
        self._requests = self._context.socket(zmq.PULL)
        self._outputs = self._context.socket(zmq.PUSH)
        for socket in (self._requests, self._outputs):
            socket.set_hwm(0)  # how much is under way is counted in requests and in steps
        self._requests.bind(f"ipc://{folder}/{REQUESTS}")
        self._outputs.connect(f"ipc://{folder}/{OUTPUTS}")
        self._done: deque[messages.Done] = deque()
        self._others: deque[messages.Message] = deque()

    def send(self, message: messages.Message) -> None:
        """To the front end; a thread of ZeroMQ's waits for it, not this one."""
        self._outputs.send(encode(message))

    def first(self) -> messages.Message:
        """What comes before all else."""
        self._take()
        return self._others.popleft()

    def others(self, *, wait: bool) -> list[messages.Message]:
        """All that has come but `Done`, in its order; at least one where it shall ``wait``."""
        self._take_all()
        while wait and not self._others:
            self._take()
        others = list(self._others)
        self._others.clear()
        return others

    def done(self, *, wait: bool) -> messages.Done | None:
        """The oldest step that the front end has processed, None where there is none."""
        if not self._done:
            self._take_all()
        while wait and not self._done:
            self._take()
        return self._done.popleft() if self._done else None

    def _take_all(self) -> None:
        while self._requests.poll(0):
            self._take()

    def _take(self) -> None:
        message = messages.to_core(self._requests.recv())
        if isinstance(message, messages.Done):
            self._done.append(message)
        else:
            self._others.append(message)

    def close(self) -> None:
        """Send what is still to be sent, for a second at most."""
        self._context.destroy(linger=1000)

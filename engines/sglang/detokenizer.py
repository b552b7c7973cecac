"""SGLang's detokenizer manager, in this process and behind its own sockets."""

from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any

from engines.sglang.loop import pausing

DETOKENIZER = "batch_decode"
"""How it asks a tokenizer for its texts."""


class DetokenizerHere:
    """What a scheduler sends crosses to it, and what it answers crosses to where SGLang's tokenizer
    manager would read it: pickled or packed as the release does, over ZeroMQ.

    Nothing waits: each turn of its event loop comes after what it is to receive was sent. It has to
    be there before the scheduler, which looks for its socket.
    """

    def __init__(self, args: Any, ports: Any) -> None:
        import zmq
        from sglang.srt.managers import detokenizer_manager as module
        from sglang.srt.managers import io_struct

        self._answers: Any = zmq.Context.instance().socket(zmq.PULL)
        self._answers.bind(ports.tokenizer_ipc_name)
        manager = module.DetokenizerManager(args, ports)
        manager.is_dummy = False  # up to 0.5.5 a model of dummy weights gets no text
        self._turns = pausing(module.DetokenizerManager.event_loop)(manager)
        next(self._turns)
        receive: Callable[[Any], Any] = getattr(io_struct, "sock_recv", zmq.Socket.recv_pyobj)
        self._receive = receive
        self.sends_whole_texts = not hasattr(module.DecodeStatus, "sent_offset")
        self.class_name = f"{module.__name__}.{type(manager).__qualname__}"

    def answer(self, num_messages: int) -> list[Any]:
        """What comes back for so many messages of the scheduler, each with texts of its rows."""
        answers = []
        for _ in range(num_messages):
            next(self._turns)
            answers.append(self._receive(self._answers))
        return answers


class Texts:
    """What each request's text is so far; a step of any batch runs the same bytecodes here."""

    def __init__(self) -> None:
        self._parts: dict[str, Any] = defaultdict(list)

    def add(self, answer: Any) -> None:
        """What one message brings: what has come to each text since the message before."""
        parts = map(self._parts.__getitem__, answer.rids)
        deque(map(list.append, parts, answer.output_strs), maxlen=0)

    def replace(self, answer: Any) -> None:
        """What one message of 0.4.6 brings: each text as a whole."""
        self._parts.update(zip(answer.rids, zip(answer.output_strs, strict=True), strict=True))

    def pop(self, request: int) -> str:
        """A request's whole text; it is forgotten."""
        return "".join(self._parts.pop(str(request), ()))

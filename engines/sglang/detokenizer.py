"""SGLang's detokenizer manager, in this process and behind its own sockets."""

from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any

from engines.sglang.loop import pausing

DETOKENIZER = "batch_decode"
"""How it asks a tokenizer for its texts."""


class DetokenizerHere:
    """What a scheduler sends crosses to it, and what it answers crosses to SGLang's tokenizer
    manager or who is in its place: pickled or packed as the release does, over ZeroMQ.

    Nothing waits: each turn of its event loop comes after what it is to receive was sent. It has to
    be there after who reads its answers, and before the scheduler, which looks for its socket.
    """

    def __init__(self, args: Any, ports: Any) -> None:
        from sglang.srt.managers import detokenizer_manager as module

        manager = module.DetokenizerManager(args, ports)
        manager.is_dummy = False  # up to 0.5.5 a model of dummy weights gets no text
        self._turns = pausing(module.DetokenizerManager.event_loop)(manager)
        next(self._turns)
        self.class_name = f"{module.__name__}.{type(manager).__qualname__}"

    def answer(self) -> None:
        """Send on what comes of a message of the scheduler."""
        next(self._turns)


class Reader:
    """Reads the detokenizer's answers where SGLang's tokenizer manager would, and keeps what each
    request's text is so far; a step of any batch runs the same bytecodes here.
    """

    def __init__(self, args: Any, ports: Any) -> None:
        import zmq
        from sglang.srt.managers import detokenizer_manager as module
        from sglang.srt.managers import io_struct

        self._answers: Any = zmq.Context.instance().socket(zmq.PULL)
        self._answers.bind(ports.tokenizer_ipc_name)
        receive: Callable[[Any], Any] = getattr(io_struct, "sock_recv", zmq.Socket.recv_pyobj)
        self._receive = receive
        sends_whole = not hasattr(module.DecodeStatus, "sent_offset")
        self._keep = self._replace if sends_whole else self._add
        self._parts: dict[str, Any] = defaultdict(list)
        self.detokenizer = DetokenizerHere(args, ports)

    def see_through(self, _: Any) -> None:
        """What comes back for a message of the scheduler, with texts of its rows."""
        self.detokenizer.answer()
        self._keep(self._receive(self._answers))

    def _add(self, answer: Any) -> None:
        """What has come to each text since the message before."""
        parts = map(self._parts.__getitem__, answer.rids)
        deque(map(list.append, parts, answer.output_strs), maxlen=0)

    def _replace(self, answer: Any) -> None:
        """From 0.4.6 each text comes as a whole."""
        self._parts.update(zip(answer.rids, zip(answer.output_strs, strict=True), strict=True))

    def text(self, rid: str) -> str:
        """A request's text so far; "" of one that is forgotten."""
        return "".join(self._parts.get(rid, ()))

    def forget(self, rid: str) -> None:
        """Keep its text no longer."""
        self._parts.pop(rid, None)

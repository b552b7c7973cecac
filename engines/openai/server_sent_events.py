"""Server-sent events out of pieces of bytes, wherever these were cut.

https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
"""

from typing import NamedTuple

_BOM = b"\xef\xbb\xbf"


class Event(NamedTuple):
    """``data``: its data fields, joined by LF. ``name``: its type, b"" where it says none."""

    data: bytes
    name: bytes = b""


class EventDecoder:
    """``feed`` pieces in their order; the events that have data come out.

    Lines end in CR, LF or both. Comments and other fields say nothing.
    """

    __slots__ = ("_after_cr", "_begun", "_tail")

    def __init__(self) -> None:
        self._tail = b""
        self._after_cr = False
        self._begun = False

    def feed(self, piece: bytes) -> list[Event]:
        """Those that end in this piece."""
        if self._after_cr or b"\r" in piece:
            piece = self._with_lf(piece)
        text = self._tail + piece
        if not self._begun:
            if len(text) < len(_BOM) and _BOM.startswith(text):
                self._tail = text
                return []
            text = text.removeprefix(_BOM)
            self._begun = True
        *events, self._tail = text.split(b"\n\n")
        return [event for text in events if (event := _event(text)) is not None]

    def end(self) -> list[Event]:
        """What no blank line has ended: the last event of some servers, or a body that is none."""
        text, self._tail = self._tail.strip(b"\n"), b""
        event = Event(text) if text.startswith(b"{") else _event(text)
        return [] if event is None else [event]

    def _with_lf(self, piece: bytes) -> bytes:
        if self._after_cr and piece:
            piece = piece.removeprefix(b"\n")
        ends_in_cr = piece.endswith(b"\r")
        self._after_cr = ends_in_cr or (self._after_cr and not piece)
        return piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _event(text: bytes) -> Event | None:
    """What these lines say, None where they have no data."""
    if text.startswith(b"data: ") and b"\n" not in text:
        return Event(text[6:])
    lines = [line.partition(b":")[::2] for line in text.split(b"\n")]
    data = [value.removeprefix(b" ") for name, value in lines if name == b"data"]
    names = [value.removeprefix(b" ") for name, value in lines if name == b"event"]
    return Event(b"\n".join(data), names[-1] if names else b"") if data else None

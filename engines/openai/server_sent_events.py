"""Server-sent events out of pieces of bytes, wherever these were cut.

https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
"""

_BOM = b"\xef\xbb\xbf"


class EventDecoder:
    """``feed`` pieces in their order; what an event's ``data`` fields say comes out.

    Lines end in CR, LF or both. Comments and other fields say nothing. An event that no blank line
    has ended is none.
    """

    __slots__ = ("_after_cr", "_begun", "_tail")

    def __init__(self) -> None:
        self._tail = b""
        self._after_cr = False
        self._begun = False

    def feed(self, piece: bytes) -> list[bytes]:
        """The data of the events that end in this piece; several fields are joined by LF."""
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
        return [data for event in events if (data := _data(event)) is not None]

    @property
    def rest(self) -> bytes:
        """What has come of an event that has not ended."""
        return self._tail

    def _with_lf(self, piece: bytes) -> bytes:
        if self._after_cr and piece:
            piece = piece.removeprefix(b"\n")
        ends_in_cr = piece.endswith(b"\r")
        self._after_cr = ends_in_cr or (self._after_cr and not piece)
        return piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _data(event: bytes) -> bytes | None:
    """What an event says, None where it has no data."""
    if event.startswith(b"data: ") and b"\n" not in event:
        return event[6:]
    fields = [
        line[5:].removeprefix(b" ") if line[4:5] == b":" else b""
        for line in event.split(b"\n")
        if line == b"data" or line.startswith(b"data:")
    ]
    return b"\n".join(fields) if fields else None

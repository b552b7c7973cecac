"""Tokens that are text, and runs of tokens that are a byte each: Llama 2's way.

A run that is UTF-8 is that text; any other is one U+FFFD a byte, all of it: the next byte decides
over those before.
"""

from collections.abc import Sequence

from engines.builtin.text import REPLACEMENT
from engines.builtin.text.token_pieces import TokenPieces


def _read_run(run: bytes) -> str:
    try:
        return run.decode()
    except UnicodeDecodeError:
        return REPLACEMENT * len(run)


def decode_with_fallback(table: TokenPieces, token_ids: Sequence[int]) -> str:
    """The text of all these tokens."""
    parts: list[str] = []
    run = b""
    is_first = True
    for token_id in token_ids:
        if token_id in table.silent:
            continue
        if (byte := table.fallback.get(token_id)) is not None:
            run += byte
        else:
            parts.append(_read_run(run))
            run = b""
            parts.append(
                table.first_string(token_id) if is_first else table.pieces[token_id].decode()
            )
        is_first = False
    text = "".join(parts) + _read_run(run)
    return text[_leading(text, table.rules.stripped, table.rules.num_stripped) :]


def _leading(text: str, character: str, most: int) -> int:
    return min(len(text) - len(text.lstrip(character)), most) if most else 0


class ByteFallbackStream:
    """Shows and withholds what `DecodeStream` does.

    A run is shown as soon as it is UTF-8. If a later byte unmakes it, what was shown cannot be
    taken back: the stream is exact no more.
    """

    __slots__ = (
        "_held",
        "_is_broken",
        "_is_first",
        "_num_shown",
        "_run",
        "_table",
        "_to_strip",
        "settled",
    )

    def __init__(self, table: TokenPieces, at_start: bool = True) -> None:
        self._table = table
        self._is_first = at_start
        self._to_strip = table.rules.num_stripped if at_start else 0
        self._run = b""
        self._num_shown = 0  # bytes of the run
        self._held = ""
        self._is_broken = False
        self.settled = not at_start
        """Whether the next token's text depends on that token alone."""

    @property
    def exact(self) -> bool:
        """Whether nothing is withheld, and nothing was shown that is not so."""
        return not (self._held or self._is_broken or len(self._run) > self._num_shown)

    def step(self, token_id: int) -> str:
        """A look-up, but at the beginning and about runs of bytes."""
        if self.settled and (text := self._table.strings[token_id]) is not None:
            return text
        if token_id in self._table.silent:
            return ""
        text = self._held + self._strip(self._next(token_id))
        self._is_first = False
        self._held = text if text.endswith(REPLACEMENT) else ""
        self.settled = not (self._run or self._held or self._to_strip or self._is_broken)
        return "" if self._held else text

    def _next(self, token_id: int) -> str:
        table = self._table
        if (byte := table.fallback.get(token_id)) is not None:
            self._run += byte
            try:
                text = self._run[self._num_shown :].decode()
            except UnicodeDecodeError:
                return ""
            self._num_shown = len(self._run)
            return text
        hidden = len(self._run) - self._num_shown
        self._is_broken |= hidden > 0 and self._num_shown > 0
        self._run, self._num_shown = b"", 0
        own = table.first_string(token_id) if self._is_first else table.pieces[token_id].decode()
        return REPLACEMENT * hidden + own

    def _strip(self, text: str) -> str:
        cut = _leading(text, self._table.rules.stripped, self._to_strip)
        self._to_strip = self._to_strip - cut if cut == len(text) else 0
        return text[cut:]

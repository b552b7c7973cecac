"""Byte-level tokens, GPT-2's way: each character stands for a byte, all bytes are one text."""

from collections.abc import Sequence

from engines.builtin.text import REPLACEMENT


def _stand_ins() -> dict[str, int]:
    """Printable Latin-1 stands for itself, the other bytes for what follows from 256 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {
        chr(256 + nth): byte for nth, byte in enumerate(others)
    }


_BYTE_OF = _stand_ins()


def token_bytes(token: str) -> bytes:
    """The bytes of a token; one with a character that stands for none is taken as it is."""
    try:
        return bytes([_BYTE_OF[character] for character in token])
    except KeyError:
        return token.encode()


class ByteLevelStream:
    """Shows and withholds what `DecodeStream` does, without decoding a token twice.

    ``strings`` and ``pieces`` by token id, as `TokenPieces` has them.
    ``_held``: bytes since the last that were shown, all withheld while their text ends in U+FFFD.
    """

    __slots__ = ("_held", "_pieces", "_strings")

    def __init__(self, strings: Sequence[str | None], pieces: Sequence[bytes]) -> None:
        self._strings = strings
        self._pieces = pieces
        self._held = b""

    @property
    def exact(self) -> bool:
        """Whether nothing is withheld."""
        return not self._held

    def step(self, token_id: int) -> str:
        """A look-up, where neither the token nor the one before ends within a character."""
        if not self._held and (text := self._strings[token_id]) is not None:
            return text
        held = self._held + self._pieces[token_id]
        text = held.decode(errors="replace")
        if text.endswith(REPLACEMENT):
            self._held = held
            return ""
        self._held = b""
        return text

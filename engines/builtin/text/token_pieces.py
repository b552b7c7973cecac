"""What each token of a tokenizer is in bytes and text, read once."""

import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engines.builtin.text import REPLACEMENT
from engines.builtin.text.byte_level import token_bytes
from engines.builtin.text.decoder_rules import DecoderRules, read_rules
from engines.protocol import BoolArray, Int64Array
from engines.vocabulary import read_tokenizer_file

_BYTE_TOKEN = re.compile("<0x([0-9A-Fa-f]{2})>")


class FlatPieces(NamedTuple):
    """Token ``i`` is ``data[offsets[i] : offsets[i] + lengths[i]]``; ``data`` uint8."""

    data: NDArray[np.uint8]
    offsets: Int64Array
    lengths: Int64Array


class TokenPieces:
    """The tokens of a tokenizer whose decoder only joins bytes.

    By token id: ``strings``, the token's text where it is complete by itself, else None;
    ``pieces``, its bytes. ``fallback``: the byte of each token that is but one. ``silent``: ids
    that the decoder never sees. ``num_ids``: from there on ids are no tokens.
    """

    def __init__(self, tokenizer: str, vocab_size: int) -> None:
        self.rules: DecoderRules = read_rules(tokenizer)
        file = read_tokenizer_file(tokenizer)
        special = {token.content for token in file.added_tokens if token.special}
        tokens = {i: token for i, token in file.tokens().items() if token not in special}
        self.num_ids = max(tokens, default=0) + 1
        size = max(vocab_size, self.num_ids)
        self.silent = frozenset(range(size)) - tokens.keys()
        self.fallback: dict[int, bytes] = {}
        self.pieces = [b""] * size
        for i, token in tokens.items():
            self.pieces[i] = self._piece(i, self.rules.string(token))
        self.strings = [self._string(i, piece) for i, piece in enumerate(self.pieces)]
        self._tokens = tokens

    def _piece(self, token_id: int, token: str) -> bytes:
        if self.rules.byte_level:
            return token_bytes(token)
        if self.rules.byte_fallback and (byte := _BYTE_TOKEN.fullmatch(token)):
            self.fallback[token_id] = bytes.fromhex(byte[1])
            return self.fallback[token_id]
        return token.encode()

    def _string(self, token_id: int, piece: bytes) -> str | None:
        text = piece.decode(errors="replace")
        return None if token_id in self.fallback or text.endswith(REPLACEMENT) else text

    def first_string(self, token_id: int) -> str:
        """The text of a token that begins a request's."""
        return self.rules.string(self._tokens[token_id], is_first=True)

    def flat(self) -> FlatPieces:
        """The pieces in one array, for whole batches."""
        lengths = np.array([len(piece) for piece in self.pieces], np.int64)
        data = np.frombuffer(b"".join(self.pieces), np.uint8)
        return FlatPieces(data, np.cumsum(lengths) - lengths, lengths)

    def incomplete(self) -> BoolArray:
        """bool by token id: which have no text by themselves."""
        return np.array([string is None for string in self.strings], np.bool_)

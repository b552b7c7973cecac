"""A table from token id to bytes, read once; text is looked up and joined, UTF-8 put together."""

from collections.abc import Sequence

from engines.builtin.text import TokenStream
from engines.builtin.text.byte_fallback import ByteFallbackStream, decode_with_fallback
from engines.builtin.text.byte_level import ByteLevelStream
from engines.builtin.text.decoder_rules import read_rules
from engines.builtin.text.token_pieces import TokenPieces


class ByteTable(TokenPieces):
    """A `Detokenizer` of byte-level tokenizers, and of Llama's with fallback."""

    needs_objects = False
    check = staticmethod(read_rules)

    @property
    def is_final(self) -> bool:
        """Of byte-level tokens: what is returned ends with a character."""
        return self.rules.byte_level

    def stream(self) -> TokenStream:
        """A new request's."""
        if self.rules.byte_level:
            return ByteLevelStream(self.strings, self.pieces)
        return ByteFallbackStream(self)

    def decode(self, token_ids: Sequence[int]) -> str:
        """The text of these tokens at once, as `tokenizers.Tokenizer.decode` gives it."""
        if self.rules.byte_level:
            return b"".join([self.pieces[i] for i in token_ids]).decode(errors="replace")
        return decode_with_fallback(self, token_ids)

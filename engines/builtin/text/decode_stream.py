"""A `DecodeStream` of the tokenizers library a request, a call a token: vLLM's fast path."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from engines.builtin.text.decoder_rules import find_rules
from engines.vocabulary import load_tokenizer, read_tokenizer_file

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_INVALID_PREFIX = "Invalid prefix"


class DecodeStreams:
    """Any tokenizer; the library decodes a request's last few tokens anew for each one."""

    needs_objects = True
    check = staticmethod(read_tokenizer_file)

    def __init__(self, tokenizer: str, vocab_size: int) -> None:
        self._tokenizer = load_tokenizer(tokenizer)
        self.num_ids = max(self._tokenizer.get_vocab(with_added_tokens=True).values()) + 1
        rules = find_rules(tokenizer)
        self._can_be_exact = rules is not None
        self.is_final = rules is not None and rules.byte_level

    def stream(self) -> "_Stream":
        """A new `DecodeStream`."""
        return _Stream(self._tokenizer, self._can_be_exact)

    def decode(self, token_ids: Sequence[int]) -> str:
        """The library's own `decode`."""
        text: str = self._tokenizer.decode(token_ids, skip_special_tokens=True)
        return text


class _Stream:
    """Hazards of `DecodeStream`, each of which leaves what it has returned short of the truth.

    It withholds text that ends in U+FFFD and has no way to say that no more will come. Where a
    run of byte tokens turns out to be no UTF-8 after part of it was returned as characters, it
    raises "Invalid prefix" and is of no use any more; vLLM (#17448) then begins a new one with
    the last token, which loses those between. A decoder that looks at neighbours (WordPiece's
    clean-up) can say something else of the last few tokens than of all.
    """

    __slots__ = ("_can_be_exact", "_stream", "_tokenizer", "exact")

    def __init__(self, tokenizer: "Tokenizer", can_be_exact: bool) -> None:
        self._tokenizer = tokenizer
        self._can_be_exact = can_be_exact
        self._stream = self._begin()
        self.exact = True

    @staticmethod
    def _begin() -> Any:
        from tokenizers.decoders import DecodeStream

        return DecodeStream(skip_special_tokens=True)

    def step(self, token_id: int) -> str:
        """One call of the library's."""
        try:
            text: str | None = self._stream.step(self._tokenizer, token_id)
        except Exception as error:  # the library raises nothing narrower
            if not str(error).startswith(_INVALID_PREFIX):
                raise
            self._can_be_exact = False
            self._stream = self._begin()
            text = self._stream.step(self._tokenizer, token_id)
        if text is None:
            self.exact = False
            return ""
        self.exact = self._can_be_exact
        return text

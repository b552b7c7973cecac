"""From token ids to text as they come in; one way a file, behind `Detokenizer`."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

from engines.builtin.registries import DETOKENIZERS
from engines.protocol import EngineConfig

REPLACEMENT = "\ufffd"
"""Stands for bytes that are no UTF-8. Text that ends in it is withheld: the character that it
stands for may be finished by the next token."""


class TokenStream(Protocol):
    """One request's tokens, one by one."""

    @property
    def exact(self) -> bool:
        """Whether all that `step` has returned is the text of all tokens so far."""
        ...

    def step(self, token_id: int) -> str:
        """The text that can be shown now that this token is there; often "" or several tokens'."""
        ...


class Detokenizer(Protocol):
    """Decodes the tokens of one ``tokenizer.json``, special tokens left out."""

    needs_objects: bool
    """Whether it keeps an object a request, so that no whole batch can be decoded at once."""

    num_ids: int
    """Ids from here on are no tokens and have no text."""

    @property
    def is_final(self) -> bool:
        """Whether what a stream returns is: the text of all tokens is that of those so far, and
        of those that come decoded by themselves.
        """
        ...

    @staticmethod
    def check(tokenizer: str) -> object:
        """Raise ValueError where it cannot decode this tokenizer's tokens."""
        ...

    def __init__(self, tokenizer: str, vocab_size: int) -> None:
        """Read the tokenizer; ids from its own size up to ``vocab_size`` have no text."""
        ...

    def stream(self) -> TokenStream:
        """For a new request."""
        ...

    def decode(self, token_ids: Sequence[int]) -> str:
        """The text of these tokens at once."""
        ...


def load_detokenizer(config: EngineConfig) -> Detokenizer | None:
    """What a configuration asks for, None where that is nothing. Raises ValueError as `check`."""
    if DETOKENIZERS.load(config.detokenizer) is None:
        return None
    return _load(config.detokenizer, config.tokenizer, config.vocab_size)


@lru_cache(maxsize=4)
def _load(name: str, tokenizer: str, vocab_size: int) -> Detokenizer:
    detokenizer: Detokenizer = DETOKENIZERS.load(name)(tokenizer, vocab_size)
    return detokenizer

"""What every request asks of an engine beside its tokens: ``--axis features``."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from engines.protocol import EngineConfig, Int32Array
from engines.vocabulary import tokenizer_path

NEVER_STOPS = "\ue000never\ue000"
"""A stop string that no text has nor, for a private character, ends with the beginning of: each
text is searched for it, and what is held back of it is what is held back of any."""
ANY_TEXT = "(.|\n)*"
"""A regular expression that any text fits, since tokens are scripted: compiled, advanced by each
token and asked for its bitmask all the same."""
_REPLACEMENT = "\ufffd"
_MOST = 64


class Features(NamedTuple):
    """``samples`` of each request; ``num_loras``: adapters that requests take turns with.

    ``has_stop_token``: one that never comes, so an engine may count on an early end.
    ``has_connector``: the scheduler asks one that finds nothing for each request's KV cache.
    """

    samples: int = 1
    num_loras: int = 0
    has_grammar: bool = False
    has_stop: bool = False
    has_stop_token: bool = False
    has_connector: bool = False

    @property
    def needs_text(self) -> bool:
        """Whether an engine wants a tokenizer for them."""
        return self.has_grammar or self.has_stop


_FIELD = {
    "stop": "has_stop",
    "stop-token": "has_stop_token",
    "grammar": "has_grammar",
    "kv-connector": "has_connector",
    "samples": "samples",
    "lora": "num_loras",
}
_LEAST = {"samples": 2, "lora": 1}


def read_features(config: EngineConfig, known: Sequence[str]) -> Features:
    """Those asked for, each one of ``known``. Raises ValueError for any other and for the same
    twice.
    """
    asked: dict[str, Any] = {}
    for each in config.features.split("+") if config.features != "none" else ():
        name, _, number = each.partition(":")
        least = _LEAST.get(name)
        is_right = each == name if least is None else _is_number(number, least)
        if name not in known or not is_right or _FIELD[name] in asked:
            raise ValueError(
                f"--axis features={config.features}: must be none or, with + between "
                f"them, of {_listed(known)}"
            )
        asked[_FIELD[name]] = True if least is None else int(number)
    return Features(**asked)


def _listed(known: Sequence[str]) -> str:
    *names, last = [f"{name}:N" if name in _LEAST else name for name in known]
    most = f", with an N of at most {_MOST}" if _LEAST.keys() & set(known) else ""
    return f"{', '.join(names)} and {last}{most}"


def fitting_tokens(tokenizer: str) -> Int32Array:
    """By token id, itself or, where by itself it is no text, a token that is: int32 ``[vocab]``.

    What a grammar rejects no model could have sampled.
    """
    from tokenizers import Tokenizer

    read: Any = Tokenizer.from_file(str(tokenizer_path(tokenizer)))
    tokens = np.arange(read.get_vocab_size(), dtype=np.int32)
    special = read.get_added_tokens_decoder()
    is_text = [each not in special and _REPLACEMENT not in read.decode([each]) for each in tokens]
    return np.where(is_text, tokens, tokens[is_text][0])


def _is_number(text: str, least: int) -> bool:
    return text.isdecimal() and least <= int(text) <= _MOST

"""What every request asks of vLLM beside its tokens: ``--axis features``."""

from typing import Any, NamedTuple

import numpy as np

from engines.protocol import EngineConfig, Int32Array
from engines.vocabulary import tokenizer_path

_STOP = "\0never\0"
"""A stop string that no text has: each text is searched for it, and its end held back."""
_GRAMMAR = "(.|\n)*"
"""A regular expression that any text fits, since tokens are scripted: compiled, advanced by each
token and asked for its bitmask all the same."""
_REPLACEMENT = "\ufffd"
_MOST = 64


class Features(NamedTuple):
    """``samples`` of each request; ``num_loras``: adapters that requests take turns with.

    ``has_connector``: the scheduler asks one that finds nothing for each request's KV cache.
    """

    samples: int = 1
    num_loras: int = 0
    has_grammar: bool = False
    has_stop: bool = False
    has_connector: bool = False

    @property
    def needs_text(self) -> bool:
        """Whether vLLM wants a tokenizer for them."""
        return self.has_grammar or self.has_stop

    def sampling(self) -> dict[str, Any]:
        """Fields of vLLM's ``SamplingParams``, and of its API server's requests."""
        asked: dict[str, Any] = {}
        if self.samples > 1:
            asked |= {"n": self.samples, "temperature": 1.0}  # refused of greedy sampling
        if self.has_stop:
            asked["stop"] = [_STOP]
        if self.has_grammar:
            asked["structured_outputs"] = {"regex": _GRAMMAR}
        return asked

    def engine_arguments(self) -> dict[str, Any]:
        """Of vLLM's ``EngineArgs``."""
        asked: dict[str, Any] = {}
        if self.num_loras:
            asked |= dict.fromkeys(("max_loras", "max_cpu_loras"), self.num_loras)
            asked["enable_lora"] = True
        if self.has_connector:
            from vllm.config import KVTransferConfig

            asked["kv_transfer_config"] = KVTransferConfig(
                kv_connector="NullConnector",
                kv_connector_module_path="engines.vllm.null_connector",
                kv_role="kv_both",
            )
        return asked


def features_of(config: EngineConfig) -> Features:
    """Raises ValueError for those that are not known."""
    asked: dict[str, Any] = {}
    for each in config.features.split("+") if config.features != "none" else ():
        match each.partition(":"):
            case ("samples", _, number) if _is_number(number, least=2):
                asked["samples"] = int(number)
            case ("lora", _, number) if _is_number(number, least=1):
                asked["num_loras"] = int(number)
            case ("grammar", "", ""):
                asked["has_grammar"] = True
            case ("stop", "", ""):
                asked["has_stop"] = True
            case ("kv-connector", "", ""):
                asked["has_connector"] = True
            case _:
                raise ValueError(
                    f"--axis features={config.features}: must be none or, with + between "
                    "them, of stop, grammar, kv-connector, samples:N and lora:N, with an N of at "
                    f"most {_MOST}"
                )
    return Features(**asked)


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

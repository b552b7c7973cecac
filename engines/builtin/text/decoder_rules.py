"""What a tokenizer's decoder does to its tokens, where it goes through them byte by byte."""

from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from engines.vocabulary import read_tokenizer_file, tokenizer_path


class DecoderRules(NamedTuple):
    """In the order of their use.

    ``replaced``: in each token the first by the second, in the first token by the third.
    ``byte_level``: characters stand for bytes, as in GPT-2. ``byte_fallback``: tokens such as
    ``<0xE2>`` are bytes, as in Llama 2. ``num_stripped`` of ``stripped`` are cut off the text's
    beginning.
    """

    replaced: tuple[tuple[str, str, str], ...] = ()
    byte_level: bool = False
    byte_fallback: bool = False
    stripped: str = ""
    num_stripped: int = 0

    def string(self, token: str, is_first: bool = False) -> str:
        """A token after the replacements."""
        for old, new, new_in_first in self.replaced:
            token = token.replace(old, new_in_first if is_first else new)
        return token


def read_rules(tokenizer: str) -> DecoderRules:
    """The rules of a tokenizer's decoder.

    Raises ValueError where there is no tokenizer, or its decoder is not of this kind.
    """
    rules = find_rules(tokenizer)
    if rules is None:
        raise ValueError(
            f"--axis detokenizer=byte_table: the decoder of {tokenizer_path(tokenizer)} does "
            "more than "
            "to join bytes; use --axis detokenizer=decode_stream"
        )
    return rules


def find_rules(tokenizer: str) -> DecoderRules | None:
    """The rules of a tokenizer's decoder, None where it does more than to join bytes."""
    return _read(tokenizer_path(tokenizer))


@lru_cache
def _read(path: Path) -> DecoderRules | None:
    decoder = read_tokenizer_file(str(path)).decoder or {}
    steps = _steps(decoder)
    kinds = [step.get("type") for step in steps]
    # What is replaced is looked for in single tokens, what is stripped in the text as a whole.
    replacing = [step for step in steps if step.get("type") in ("Replace", "Metaspace")]
    pairs = [_replaced(step) for step in replacing]
    joining = kinds[len(replacing) :]
    if kinds[: len(replacing)] != [step["type"] for step in replacing] or None in pairs:
        return None
    replaced = tuple(pair for pair in pairs if pair is not None)
    if joining in (["ByteLevel"], ["ByteLevel", "Fuse"]):
        whole = not any(new != first for _, new, first in replaced)
        return DecoderRules(replaced, byte_level=True) if whole else None
    if joining in ([], ["Fuse"], ["ByteFallback"], ["ByteFallback", "Fuse"]):
        return DecoderRules(replaced, byte_fallback="ByteFallback" in joining) if kinds else None
    if joining not in (["Fuse", "Strip"], ["ByteFallback", "Fuse", "Strip"]):
        return None
    match steps[-1]:
        case {"stop": 0, "content": str(stripped), "start": int(num_stripped)}:
            return DecoderRules(replaced, False, "ByteFallback" in joining, stripped, num_stripped)
    return None


def _steps(decoder: dict[str, Any]) -> list[dict[str, Any]]:
    """Those of a sequence; none where it is not as the tokenizers library writes it."""
    steps = decoder.get("decoders") if decoder.get("type") == "Sequence" else [decoder]
    is_list = isinstance(steps, list) and all(isinstance(step, dict) for step in steps)
    return steps if isinstance(steps, list) and is_list else []


def _replaced(step: dict[str, Any]) -> tuple[str, str, str] | None:
    match step:
        case {"type": "Replace", "pattern": {"String": str(old)}, "content": str(new)} if old:
            return old, new, new
        case {"type": "Metaspace", "replacement": str(old)} if old:
            scheme = step.get("prepend_scheme", "always")
            bare = scheme != "never" and step.get("add_prefix_space") is not False
            return old, " ", "" if bare else " "
    return None

"""Tokenizers of every kind a detokenizer can meet, written by the tokenizers library itself."""

from collections.abc import Callable
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders
from tokenizers.models import BPE, Unigram, WordPiece

from engines.vocabulary import SHIPPED_TOKENIZER

_WORDS = ["▁", "▁▁", "▁Hello", "Hello", "llo", "▁é", "é", "日", "a", "b", "ab", "▁a▁b", "�", "x�"]


def _byte_level() -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(SHIPPED_TOKENIZER))
    tokenizer.add_special_tokens(["<|im_end|>"])
    tokenizer.add_tokens(["<tool call>", "naïve 日"])  # characters that stand for no byte
    return tokenizer


def _llama(*decoder: decoders.Decoder) -> Tokenizer:
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *_WORDS]
    vocab = {piece: i for i, piece in enumerate(pieces)}
    tokenizer = Tokenizer(BPE(vocab, [], byte_fallback=True, unk_token="<unk>"))
    tokenizer.decoder = decoders.Sequence(list(decoder))
    tokenizer.add_special_tokens(["<s>", "</s>"])
    return tokenizer


def _llama_2() -> Tokenizer:
    strip = decoders.Strip(" ", 1, 0)
    return _llama(decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), strip)


def _gemma() -> Tokenizer:
    return _llama(decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse())


def _metaspace() -> Tokenizer:
    tokenizer = Tokenizer(Unigram([("<unk>", 0.0), *((word, -1.0) for word in _WORDS)], 0, False))
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.add_special_tokens(["</s>"])
    return tokenizer


def _word_piece() -> Tokenizer:
    pieces = ["[UNK]", "do", "n", "'", "t", "##t", "##ing", ".", ","]
    tokenizer = Tokenizer(WordPiece({piece: i for i, piece in enumerate(pieces)}))
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer


def _by_pattern() -> Tokenizer:
    return _llama(decoders.Replace(Regex("▁+"), " "), decoders.Fuse())


def _strips_the_end() -> Tokenizer:
    """The library itself panics over a text that is shorter than what it is to cut."""
    return _llama(decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 0, 1))


def _without_decoder() -> Tokenizer:
    tokenizer = _metaspace()
    tokenizer.decoder = None
    return tokenizer


BYTEWISE: dict[str, Callable[[], Tokenizer]] = {
    "byte_level": _byte_level,
    "llama_2": _llama_2,
    "gemma": _gemma,
    "metaspace": _metaspace,
}
OTHERS: dict[str, Callable[[], Tokenizer]] = {
    "word_piece": _word_piece,
    "by_pattern": _by_pattern,
    "strips_the_end": _strips_the_end,
    "without_decoder": _without_decoder,
}


def write_all(folder: Path) -> dict[str, str]:
    """The path of each, by its name; "shipped" is the empty path that means it."""
    paths = {"shipped": ""}
    for name, make in (BYTEWISE | OTHERS).items():
        paths[name] = str(folder / f"{name}.json")
        make().save(paths[name])
    return paths

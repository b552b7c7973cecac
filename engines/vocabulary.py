"""How many tokens a tokenizer has and which one ends a text, read from its file alone."""

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

import msgspec

from engines.regular_file import read_regular

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SHIPPED_TOKENIZER = Path(__file__).parent / "builtin" / "text" / "tokenizer.json"
"""A byte-level BPE; `benchmarks/train_tokenizer.py` made it."""

_MOST_TOKENS = 2**24
"""Tables are as long as the largest id says."""

_Read = TypeVar("_Read")

_ENDS_OF_TEXT = {
    "</s>",
    "<eos>",
    "[EOS]",
    "<|eos|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<end_of_text>",
    "<｜end▁of▁sentence｜>",
}


class Vocabulary(NamedTuple):
    """``size``: one more than the largest id; ``eos_token_id``: -1 where no token ends a text."""

    size: int
    eos_token_id: int


_SHIPPED = Vocabulary(8192, 0)  # parsing the file takes milliseconds, and every cell asks


class AddedToken(msgspec.Struct):
    """A token beside the model's own; a special one is left out of the text."""

    id: int
    content: str
    special: bool = False


class TokenizerModel(msgspec.Struct):
    """``vocab``: ids by token, or tokens with their scores in the order of their ids."""

    vocab: dict[str, int] | list[tuple[str, float]]


class TokenizerFile(msgspec.Struct):
    """What is read of a ``tokenizer.json``, the file of the tokenizers library."""

    model: TokenizerModel
    added_tokens: list[AddedToken] = []
    decoder: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        vocab = self.model.vocab
        ids = list(vocab.values()) if isinstance(vocab, dict) else []
        ids += [token.id for token in self.added_tokens]
        if strange := next((id_ for id_ in ids if not 0 <= id_ < _MOST_TOKENS), None):
            raise ValueError(f"a token has the id {strange}; {_MOST_TOKENS - 1:,} is the largest")

    def tokens(self) -> dict[int, str]:
        """Every token by its id."""
        vocab = self.model.vocab
        if isinstance(vocab, dict):
            by_id = {id_: token for token, id_ in vocab.items()}
        else:
            by_id = {id_: token for id_, (token, _) in enumerate(vocab)}
        return by_id | {token.id: token.content for token in self.added_tokens}


_TokenId = Annotated[int, msgspec.Meta(lt=2**31)]


class _Config(msgspec.Struct):
    eos_token_id: _TokenId | list[_TokenId] | None = None


def read_vocabulary(tokenizer: str) -> Vocabulary:
    """The vocabulary of a ``tokenizer.json`` or of a folder with one; "": the shipped one.

    The end of a text is what the ``generation_config.json`` or ``config.json`` beside it says,
    else the one added token that is called so. Raises ValueError where there is no tokenizer.
    """
    return _read_vocabulary(tokenizer_path(tokenizer)) if tokenizer else _SHIPPED


def tokenizer_path(tokenizer: str) -> Path:
    """The file that ``--axis tokenizer`` means; "": the shipped one."""
    path = Path(tokenizer).expanduser().absolute() if tokenizer else SHIPPED_TOKENIZER
    return path / "tokenizer.json" if path.is_dir() else path


def read_tokenizer_file(tokenizer: str) -> TokenizerFile:
    """The file itself. Raises ValueError where it is none."""
    return _read(tokenizer_path(tokenizer), TokenizerFile)


def load_tokenizer(tokenizer: str) -> "Tokenizer":
    """The tokenizers library's own. Raises ValueError where the file is none."""
    from tokenizers import Tokenizer

    read_tokenizer_file(tokenizer)
    path = tokenizer_path(tokenizer)
    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises nothing narrower
        raise ValueError(
            f"--axis tokenizer={path}: the tokenizers library refuses it ({error}); give another "
            "tokenizer.json"
        ) from None


@lru_cache
def _read_vocabulary(path: Path) -> Vocabulary:
    file = _read(path, TokenizerFile)
    ids = file.tokens()
    if not ids:
        raise ValueError(f"--axis tokenizer={path}: has no tokens; give another tokenizer.json")
    return Vocabulary(max(ids) + 1, _eos_token_id(path, file.added_tokens))


def _eos_token_id(path: Path, added_tokens: list[AddedToken]) -> int:
    for name in ("generation_config.json", "config.json"):
        beside = path.with_name(name)
        if not beside.is_file():
            continue
        eos = _read(beside, _Config).eos_token_id
        if isinstance(eos, list):
            eos = eos[0] if eos else None
        if eos is not None:
            return eos
    ends = [token.id for token in added_tokens if token.content in _ENDS_OF_TEXT]
    return ends[0] if len(ends) == 1 else -1


def _read(path: Path, kind: type[_Read]) -> _Read:
    try:
        return msgspec.json.decode(read_regular(path), type=kind)
    except OSError as error:
        raise ValueError(
            f"--axis tokenizer={path}: {error.strerror}; give a tokenizer.json or a folder with one"
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(
            f"--axis tokenizer={path}: not as the tokenizers library writes it ({error}); give a "
            "tokenizer.json or a folder with one"
        ) from None

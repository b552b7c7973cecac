"""Hugging Face's ``config.json``, and what stands beside it."""

from pathlib import Path
from typing import Any

import msgspec

from engines.builtin.model.hf_families import FAMILIES, EosTokenId, end_of_text_ids
from engines.regular_file import read_regular


class _Generation(msgspec.Struct):
    """``generation_config.json``."""

    eos_token_id: EosTokenId = None


class _Architectures(msgspec.Struct):
    architectures: list[str] | None = None


def read_fields(path: Path) -> dict[str, Any]:
    """The fields of `ModelConfig`. Raises ValueError where a config cannot be read or run.

    What ends a text is what a ``generation_config.json`` beside it says, else the config.
    """
    try:
        raw = read_regular(path)
        names = msgspec.json.decode(raw, type=_Architectures).architectures or []
        architecture = next((name for name in names if name in FAMILIES), None)
        if architecture is None:
            raise ValueError(f"architectures is {names}, and none of them is supported")
        fields = msgspec.json.decode(raw, type=FAMILIES[architecture]).fields()
        if (eos := _generation(path).eos_token_id) is not None:
            fields["eos_token_ids"] = end_of_text_ids(eos)
    except OSError as error:
        problem = error.strerror or str(error)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        problem = str(error)
    else:
        return fields | {"architecture": architecture}
    *others, last = FAMILIES
    raise ValueError(
        f"model config {path}: {problem}; give one of {', '.join(others)} or {last} as Hugging "
        "Face writes it"
    )


def _generation(config: Path) -> _Generation:
    """What stands beside the config."""
    path = config.with_name("generation_config.json")
    if not path.is_file():
        return _Generation()
    try:
        return msgspec.json.decode(read_regular(path), type=_Generation)
    except msgspec.MsgspecError as error:
        raise ValueError(f"{path.name} beside it: {error}") from None

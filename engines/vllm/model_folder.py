"""Which model vLLM is told to serve: a shipped config by its name, or a local model folder."""

import json
from pathlib import Path

from engines.model_configs import nearest_models, shipped_folder
from engines.regular_file import read_regular

_NEEDED = ("architectures", "hidden_size", "num_attention_heads", "num_hidden_layers", "vocab_size")


def model_folder(name_or_path: str) -> Path:
    """The folder of a model. Raises ValueError for an unknown name or a config that is none."""
    folder = shipped_folder(name_or_path) or Path(name_or_path).expanduser()
    if not folder.is_dir():
        near = nearest_models(name_or_path)
        raise ValueError(
            f"unknown model {name_or_path!r}; did you mean {near}? (or a model's folder)"
        )
    config = folder / "config.json"
    try:
        fields = json.loads(read_regular(config))
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"model {folder}: config.json cannot be read ({error})") from None
    missing = [name for name in _NEEDED if not (isinstance(fields, dict) and name in fields)]
    if missing:
        raise ValueError(f"model {folder}: config.json lacks {', '.join(missing)}")
    return folder


def has_weights(folder: Path) -> bool:
    """Whether there are weights beside the config."""
    return any(folder.glob("*.safetensors")) or any(folder.glob("*.bin"))


def architectures(folder: Path) -> list[str]:
    """What the config of a model's folder calls its classes."""
    return list(json.loads(read_regular(folder / "config.json"))["architectures"])

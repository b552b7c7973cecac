"""Which model vLLM is told to serve: a shipped config by its name, or a local model folder."""

import difflib
import json
from pathlib import Path

_SHIPPED = Path(__file__).parent / "models"
_NEEDED = ("architectures", "hidden_size", "num_attention_heads", "num_hidden_layers", "vocab_size")


def shipped_models() -> list[str]:
    """Names of the configs that come with the package; weights come with none."""
    return sorted(path.parent.name for path in _SHIPPED.glob("*/config.json"))


def model_folder(name_or_path: str) -> Path:
    """The folder of a model. Raises ValueError for an unknown name or a config that is none."""
    shipped = _SHIPPED / name_or_path
    folder = shipped if name_or_path in shipped_models() else Path(name_or_path).expanduser()
    if not folder.is_dir():
        known = shipped_models()
        near = difflib.get_close_matches(name_or_path, known, n=3) or known
        raise ValueError(
            f"unknown model {name_or_path!r}; nearest: {', '.join(near)} (or a model's folder)"
        )
    config = folder / "config.json"
    try:
        fields = json.loads(config.read_text())
    except (OSError, ValueError) as error:
        raise ValueError(f"model {folder}: config.json cannot be read ({error})") from None
    missing = [name for name in _NEEDED if not (isinstance(fields, dict) and name in fields)]
    if missing:
        raise ValueError(f"model {folder}: config.json lacks {', '.join(missing)}")
    return folder


def has_weights(folder: Path) -> bool:
    """Whether there are weights beside the config."""
    return any(folder.glob("*.safetensors")) or any(folder.glob("*.bin"))

"""Shipped configs of models, a folder each as Hugging Face has it; weights come with none."""

from pathlib import Path

from engines.nearest import nearest

_HERE = Path(__file__).parent


def shipped_models() -> list[str]:
    """Their names."""
    return sorted(path.parent.name for path in _HERE.glob("*/config.json"))


def shipped_folder(name: str) -> Path | None:
    """The folder of a shipped config, None where none has that name."""
    return _HERE / name if name in shipped_models() else None


def nearest_models(name: str) -> str:
    """Those whose names are the most like ``name``, for a sentence."""
    return ", ".join(nearest(Path(name).name.lower(), shipped_models()))

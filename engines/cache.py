"""Where engines keep what they prepare once."""

import os
from pathlib import Path


def cache_root() -> Path:
    """``$GCBENCH_CACHE``, else ``$XDG_CACHE_HOME/gcbench``, else ``~/.cache/gcbench``; absolute."""
    if chosen := os.environ.get("GCBENCH_CACHE"):
        return Path(chosen).expanduser().absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser().absolute() / "gcbench"

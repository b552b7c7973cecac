"""A figure as the bytes of an image file: equal results give equal files."""

import io
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg")

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Okabe and Ito's, which colour-blind readers tell apart."""


def image_bytes(figure: "Figure", suffix: str, salt: str) -> bytes:
    """The figure as one of `FORMATS`; ``salt``: what the ids in an SVG are made from."""
    from matplotlib import rc_context

    image = io.BytesIO()
    # Without a date and a random salt, equal figures give equal files.
    with rc_context({"svg.hashsalt": salt}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph .* missing", UserWarning)  # a box stands for it
        metadata = {"Date": None} if suffix == ".svg" else None
        figure.savefig(image, format=suffix.lstrip("."), dpi=120, metadata=metadata)
    return image.getvalue()


def image_suffix(path: Path) -> str:
    """Which of `FORMATS` a file's name asks for. Raises ValueError for another."""
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise ValueError(f"--image {path}: the name must end in {' or '.join(FORMATS)}")
    return suffix

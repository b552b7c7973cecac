"""A figure as the bytes of an image file: equal results give equal files."""

import io
import textwrap
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg")

NARROW = ".narrow"
"""Before one of `FORMATS`: for the width of a phone."""

_NARROW_INCHES = 4.2
_SHORT_LEGEND = 2
_NARROW_LABEL = 24
"""Characters of a label beside a narrow panel, until it is broken."""

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Okabe and Ito's, which colour-blind readers tell apart."""


def image_bytes(figure: "Figure", suffix: str, salt: str) -> bytes:
    """The figure as one of `FORMATS`, `NARROW` or not; ``salt``: what ids in an SVG are made of."""
    from matplotlib import rc_context

    if suffix.startswith(NARROW):
        suffix = suffix.removeprefix(NARROW)
        _make_narrow(figure)

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


def _make_narrow(figure: "Figure") -> None:
    """Put panels that stand side by side below one another, and break lines that are too long."""
    from matplotlib.gridspec import GridSpec

    grid = figure.axes[0].get_gridspec()
    columns = grid.ncols if grid else 1
    places = GridSpec(len(figure.axes), 1, figure=figure)
    for number, axes in enumerate(figure.axes if columns > 1 else []):
        axes.set_subplotspec(places[number, 0])
        axes.tick_params(labelleft=True)
    lines = max(_narrow_panel(figure, axes) for axes in figure.axes)
    taller = columns * max(1.25, 0.45 * lines)
    figure.set_size_inches(_NARROW_INCHES, taller * figure.get_figheight())
    for text in figure.texts:
        text.set_text(_broken(text.get_text().replace("\n", " "), float(text.get_fontsize())))


def _narrow_panel(figure: "Figure", axes: "Axes") -> int:
    """How many lines the longest label beside it has."""
    from matplotlib.ticker import FixedLocator

    axes.xaxis.label.set_text(_broken(axes.get_xlabel(), 14))
    if title := axes.get_title("left"):
        axes.set_title(_broken(title, 8.5), loc="left", fontsize=8.5).set_parse_math(False)
    legend = axes.get_legend()
    if legend and len(legend.texts) > _SHORT_LEGEND:
        names = [each.get_text() for each in legend.texts]
        handles = [each for each in legend.legend_handles if each]
        figure.legend(handles, names, loc="outside lower left", ncols=3, fontsize=7)
        legend.remove()
    if not isinstance(axes.yaxis.get_major_locator(), FixedLocator):
        return 1
    low, high = axes.get_xlim()
    axes.set_xlim(low, high + 0.25 * (high - low))  # room for what stands beside a mark
    labels = [
        "\n".join(textwrap.fill(line, _NARROW_LABEL) for line in each.get_text().split("\n"))
        for each in axes.get_yticklabels()
    ]
    axes.set_yticks(axes.get_yticks(), labels)
    for label in axes.get_yticklabels():
        label.set_fontsize(7.5)
        label.set_parse_math(False)
    return max(label.count("\n") + 1 for label in labels)


def _broken(text: str, points: float) -> str:
    """Each line broken where a narrow figure ends, at about 0.6 of an em a character."""
    width = int(72 * _NARROW_INCHES / (0.6 * points))
    return "\n".join(textwrap.fill(line, width) for line in text.split("\n"))

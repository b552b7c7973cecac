"""The picture of what changed in stored results: a dot for each series that moved."""

import textwrap
from collections.abc import Sequence

from harness import format as fmt
from harness.render.image_file import image_bytes
from harness.report.drawn_changes import DrawnChange, draw_changes
from harness.report.experiment_image import GREY
from harness.report.series_words import change_label, named_series
from harness.tracking.history_result import SeriesChange

_MOST_SERIES = 40
_WIDTH_INCHES = 9.5
_LABEL_CHARACTERS = 60


def history_image(name: str, moved: Sequence[SeriesChange], suffix: str) -> bytes:
    """The series that moved, in their order, those whose change is no number left out.

    A PNG or SVG file, on white. Imports matplotlib when called.
    """
    from matplotlib.figure import Figure

    drawn = [each for each in moved if each.ratio is not None]
    several = len({_where(each) for each in drawn}) > 1
    lines = [_line(each, is_placed=several) for each in drawn[:_MOST_SERIES]]
    figure = Figure(
        figsize=(_WIDTH_INCHES, 1.3 + 0.45 * len(lines)), layout="constrained", facecolor="white"
    )
    draw_changes(figure.subplots(), lines, "change in %")
    more = len(drawn) - len(lines)
    words = f"{name}; {more} more in the tables" if more else name
    words += "" if several else f"; {_where(drawn[0])}"
    source = "\n".join(textwrap.wrap(fmt.printable(words), 150))
    label = figure.supxlabel(source, x=0.01, ha="left", fontsize=7.5, color=GREY)
    label.set_parse_math(False)
    return image_bytes(figure, suffix, name)


def _where(change: SeriesChange) -> str:
    return f"{change.base[:8]} → {change.head[:8]} on {change.machine}, {change.environment}"


def _line(change: SeriesChange, *, is_placed: bool) -> DrawnChange:
    """``is_placed``: its label says where, too."""
    assert change.ratio is not None
    label = "\n".join(
        textwrap.shorten(fmt.printable(words), _LABEL_CHARACTERS, placeholder=" …")
        for words in (named_series(change), *[_where(change)] * is_placed)
    )
    return DrawnChange(
        label, 100 * (change.ratio - 1), None, change.verdict, change_label(change.ratio)
    )

"""Changes in percent as dots with their intervals, one below the other."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from harness import format as fmt
from harness.render.image_file import COLOURS
from harness.report.experiment_image import GREY, PALE, VERDICT_COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST = 150.0
"""Percent beyond which a change is drawn at the edge, as an arrow."""


class DrawnChange(NamedTuple):
    """A line: a change in percent, its interval where it has one, and what stands beside it."""

    label: str
    change: float
    interval: tuple[float, float] | None
    verdict: str
    note: str


def draw_changes(
    axes: "Axes", lines: Sequence[DrawnChange], words: str, tolerance: float = 0.0
) -> None:
    """A change a line, the first on top; ``words`` below; grey where ``tolerance`` calls it the
    same.
    """
    if tolerance:
        axes.axvspan(-100 * tolerance, 100 * tolerance, color=PALE, zorder=0, linewidth=0)
        words += f"; 95 % intervals; grey band: same, ±{fmt.rough_percent(tolerance)}"
    axes.axvline(0, color=GREY, linewidth=0.8, zorder=1)
    for place, line in enumerate(lines):
        change = min(line.change, _MOST)
        low, high = line.interval or (change, change)
        axes.errorbar(
            change,
            place,
            fmt=">" if change < line.change else "o",
            markersize=5,
            capsize=2.5,
            xerr=[[max(change - low, 0)], [max(high - change, 0)]],
            elinewidth=1.4,
            color=VERDICT_COLOURS.get(line.verdict, COLOURS[5]),
        )
        note = axes.annotate(
            line.note,
            (max(high, change), place),
            (6, 0),
            va="center",
            fontsize=8,
            textcoords="offset points",
        )
        note.set_parse_math(False)
    low, high = axes.get_xlim()
    axes.set_xlim(low, high + 0.3 * (high - low))
    axes.set_yticks(range(len(lines)), [line.label for line in lines], fontsize=8.5)
    for label in axes.get_yticklabels():
        label.set_parse_math(False)
    axes.set_ylim(len(lines) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color=PALE)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.set_xlabel(words, fontsize=9)

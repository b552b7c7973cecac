"""The picture of a night: the series that changed most with each commit, around its step."""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness import format as fmt
from harness.render.image_file import COLOURS, image_bytes
from harness.report.experiment_image import GREY, PALE, VERDICT_COLOURS
from harness.report.nightly_words import alert_title, change_words, nightly_headline
from harness.tracking.nightly.result import Alert, NightlyResult, StepPoint

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_SHOWN_STEPS = 6
_WIDTH_INCHES = 9.5
_LARGEST = 1e150
"""Beyond it matplotlib's own sums overflow."""


def has_nightly_picture(result: NightlyResult) -> bool:
    """Whether the night has a step of which the values around it are known."""
    return bool(_shown(result))


def nightly_image(result: NightlyResult, suffix: str) -> bytes:
    """A panel a commit, the newest first: values with their intervals, and the two levels.

    A PNG or SVG file, on white. Raises ValueError for a night without a step. Imports matplotlib
    when called.
    """
    from matplotlib.figure import Figure

    shown = _shown(result)
    if not shown:
        raise ValueError("--image: this night found no step, so there is no picture")
    figure = Figure(
        figsize=(_WIDTH_INCHES, 1.0 + 1.9 * len(shown)), layout="constrained", facecolor="white"
    )
    panels = figure.subplots(len(shown), squeeze=False)[:, 0]
    for axes, alert in zip(panels, shown, strict=True):
        _draw(axes, alert)
    words = "\n".join(textwrap.wrap(fmt.printable(nightly_headline(result)), 100))
    figure.suptitle(words, x=0.01, ha="left", fontsize=11, fontweight="bold")
    more = len(result.alerts) - len(shown)
    about = (
        f"{result.asv_machine}; " + f"{more} more in the summary; " * (more > 0) + result.command
    )
    lines = textwrap.wrap(
        f"a dot per commit, with asv's interval where it has one; lines: level before and after; "
        f"{fmt.printable(about)}",
        150,
    )
    source = figure.supxlabel("\n".join(lines), x=0.01, ha="left", fontsize=7.5, color=GREY)
    source.set_parse_math(False)
    return image_bytes(figure, suffix, result.started)


def _shown(result: NightlyResult) -> list[Alert]:
    return [
        alert for alert in result.alerts if alert.around and all(map(_can_be_drawn, alert.around))
    ][:MOST_SHOWN_STEPS]


def _can_be_drawn(point: StepPoint) -> bool:
    return all(abs(value) < _LARGEST for value in (point.value, *(point.interval or ())))


def _draw(axes: "Axes", alert: Alert) -> None:
    change, points = alert.changes[0], alert.around
    colour = VERDICT_COLOURS.get(change.verdict, COLOURS[5])
    sides = [
        [n for n, point in enumerate(points) if point.side == side]
        for side in ("before", "open", "after")
    ]
    before, open_, after = sides
    unit, scale = _unit(change.unit, max(abs(point.value) for point in points))
    for places, shade in zip(sides, (GREY, COLOURS[4], colour), strict=True):
        _dots(axes, places, points, shade, scale)
    for places, level, shade in ((before, change.before, GREY), (after, change.after, colour)):
        if places:
            axes.plot(
                [places[0] - 0.4, places[-1] + 0.4],
                [scale * level] * 2,
                color=shade,
                linewidth=1.6,
                alpha=0.7,
            )
    if after:
        first = after[0] - 0.5
        axes.axvspan((open_[0] if open_ else after[0]) - 0.5, first, color=PALE, zorder=0)
        axes.axvline(first, color=colour, linewidth=0.9, linestyle="--", zorder=1)
    named = [n for n, each in enumerate(points) if each.commit == alert.commit]
    for end in (0, len(points) - 1):
        if all(abs(end - n) > len(points) / 8 for n in named):  # else one label on another
            named.append(end)
    axes.set_xticks(named, [points[n].commit[:10] for n in named], fontsize=7.5)
    axes.set_xlim(-0.8, len(points) - 0.2)
    axes.margins(y=0.2)
    axes.ticklabel_format(axis="y", useOffset=False)
    axes.set_ylabel(unit, fontsize=8)
    axes.tick_params(axis="y", labelsize=8)
    axes.grid(axis="y", color=PALE)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    words = textwrap.shorten(fmt.printable(alert_title(alert)), 110)
    figures = textwrap.shorten(fmt.printable(change_words(change)), 110)
    title = axes.set_title(f"{words}\n{figures}", loc="left", fontsize=8.5)
    title.set_parse_math(False)


def _unit(unit: str, largest: float) -> tuple[str, float]:
    """What an axis is labelled with, and how many of it are one of the metric's own."""
    short = fmt.short_unit(unit)
    shown = fmt.seconds(largest).rpartition(" ")[2] if short == "s" else short
    return shown, {"ms": 1e3, "µs": 1e6, "ns": 1e9}.get(shown, 1.0)


def _dots(
    axes: "Axes", places: Sequence[int], points: Sequence[StepPoint], colour: str, scale: float
) -> None:
    for place in places:
        value = scale * points[place].value
        low, high = (scale * end for end in points[place].interval or (points[place].value,) * 2)
        axes.errorbar(
            place,
            value,
            yerr=[[max(value - low, 0)], [max(high - value, 0)]],
            fmt="o",
            color=colour,
            markersize=4,
            elinewidth=1,
        )

"""The map of `advise --models --image`: below which device step a candidate matters, by batch."""

from typing import TYPE_CHECKING

from harness import format as fmt
from harness.experiment.crossover import CrossoverResult, by_batch
from harness.render.image_file import COLOURS, image_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STYLES = ("-", "--", "-.", ":")
_GREY = "#5d646d"
_DPI, _LINE = 100, 13
"""Dots of an inch where texts are placed, and from one line to the next."""
_LEAST = 1e-5
"""Seconds of a step below which nobody has a device."""


def crossover_image(result: CrossoverResult, suffix: str) -> bytes:
    """A panel a candidate as a PNG or SVG file, on white: batch across, device step up.

    Below a heap's line the candidate matters; a modelled device's step is a thin line. Raises
    ValueError where nothing was measured. Imports matplotlib when called.
    """
    from matplotlib.figure import Figure

    names = result.candidates
    if not names:
        raise ValueError("--image: nothing was measured, so there is nothing to draw")
    figure = Figure(
        figsize=(7.5, 4.6 * len(names)), dpi=_DPI, layout="constrained", facecolor="white"
    )
    panels = figure.subplots(len(names), squeeze=False)[:, 0]
    for axes, candidate in zip(panels, names, strict=True):
        _draw(axes, result, candidate)
    return image_bytes(figure, suffix, result.name)


def _draw(axes: "Axes", result: CrossoverResult, candidate: str) -> None:
    batches = sorted({point.batch_size for point in result.points})
    for number, heap in enumerate(result.heaps):
        known = by_batch(result.points, candidate, heap, "token")
        if not known:
            continue
        limits = [change.small_from(result.tolerance) for change in known.values()]
        middle, low, high = (
            [1e3 * max(each, _LEAST) for each in side] for side in zip(*limits, strict=True)
        )
        colour, style = COLOURS[number % len(COLOURS)], _STYLES[number % len(_STYLES)]
        axes.plot(
            list(known),
            middle,
            style,
            color=colour,
            marker="o",
            linewidth=2,
            label=f"{fmt.count(heap)} heap objects",
        )
        axes.fill_between(list(known), low, high, color=colour, alpha=0.18, linewidth=0)
    for model in result.models:
        axes.plot(
            batches, [1e3 * model.token[batch] for batch in batches], color=_GREY, linewidth=0.9
        )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(batches, [fmt.count(batch) for batch in batches])
    axes.set_xlabel("requests in the batch")
    axes.set_ylabel("the device's step, ms")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    _label_models(axes, result, batches[-1])
    axes.grid(color="#e1e4e8")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="upper left", frameon=False, fontsize=8)
    axes.set_title(
        f"{candidate} against {result.baseline}: below the line it changes a token's\n"
        f"time by {fmt.rough_percent(result.tolerance)} or more; grey: modelled devices",
        loc="left",
        fontsize=10,
    )


def _label_models(axes: "Axes", result: CrossoverResult, batch: int) -> None:
    """Names at the right end of the lines, moved up where they would cover each other."""
    transform, lowest = axes.transData, -float("inf")
    for model in sorted(result.models, key=lambda model: model.token[batch]):
        step = 1e3 * model.token[batch]
        _, height = transform.transform((batch, step))
        lowest = max(height, lowest + _LINE)
        axes.annotate(
            model.name,
            (batch, step),
            (4, (lowest - height) * 72 / _DPI),
            textcoords="offset points",
            fontsize=7.5,
            color=_GREY,
            va="center",
            annotation_clip=False,
        )

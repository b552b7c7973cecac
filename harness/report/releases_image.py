"""The chart of `gcbench releases --image`: young collections by release and policy."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from harness.experiment.result import ExperimentResult
from harness.metrics import METRICS
from harness.render.image_file import COLOURS, image_bytes
from harness.report.known_releases import KnownChange
from harness.report.release_lines import YOUNG, ReleaseLine, changes_by_release, release_lines
from harness.report.summary import on_device

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKERS = "os^Dv*"


def releases_image(
    result: ExperimentResult, suffix: str, labels: Mapping[str, str] | None = None
) -> bytes:
    """Collections of generation 0 along the releases as a PNG or SVG file, on white.

    A line a policy, and a vertical at each release that some known change first came with: solid
    where that change was tried by itself. ``labels``: what releases are called, where not by
    their version. Raises ValueError where no cell has the metric. Imports matplotlib when called.
    """
    from matplotlib.figure import Figure

    along = release_lines(result)
    lines = [line for line in along.lines if any(v is not None for v in line.medians(YOUNG))]
    if not lines:
        raise ValueError("--image: no trial has counted collections, there is nothing to draw")
    width = min(14.0, max(7.0, 2 + 0.42 * len(along.releases)))
    figure = Figure(figsize=(width, 5), layout="constrained", facecolor="white")
    axes = figure.subplots()
    _draw_lines(axes, lines)
    _draw_changes(axes, along.releases, changes_by_release(along.releases, along.known.change))
    names = [(labels or {}).get(release, release) for release in along.releases]
    axes.set_xticks(range(len(names)), names, rotation=60 if len(names) > 8 else 0)
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.set_ylabel("collections of generation 0")
    axes.grid(axis="y", color="#e1e4e8")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower right", frameon=False, ncols=min(len(lines), 4))
    replayed = ", ".join(
        f"{each.name}, {each.num_requests:,} requests" for each in result.workloads
    )
    axes.set_title(
        f"{along.known.name}'s host path by release{on_device(result.cells)}: {replayed}",
        loc="left",
        fontsize=11,
    )
    return image_bytes(figure, suffix, result.name)


def _draw_lines(axes: "Axes", lines: list[ReleaseLine]) -> None:
    """Later ones thinner, so that all are seen where they meet."""
    tallest = 0.0
    for place, line in enumerate(lines):
        values = line.medians(YOUNG)
        known = [(x, value) for x, value in enumerate(values) if value is not None]
        thick = 1.4 + min(1.3 * (len(lines) - 1 - place), 5.0)
        axes.plot(
            [x for x, _ in known],
            [value for _, value in known],
            label=line.name,
            color=COLOURS[place % len(COLOURS)],
            marker=_MARKERS[place % len(_MARKERS)],
            linewidth=thick,
            markersize=3 + thick,
        )
        tallest = max([tallest, *(value for _, value in known)])
    # Above the lines there is room for the changes' numbers.
    axes.set_ylim(0, max(tallest, METRICS[YOUNG].least_change) * 1.3)


def _draw_changes(
    axes: "Axes", releases: list[str], changes: Mapping[str, list[KnownChange]]
) -> None:
    """What the first release has, none is without: no mark there."""
    for x, release in enumerate(releases):
        here = changes.get(release)
        if x == 0 or not here:
            continue
        tried = bool(here[0].tried)
        axes.axvline(x, color="#5d646d", linewidth=1, linestyle="-" if tried else "--", zorder=0)
        more = f" +{len(here) - 1}" if len(here) > 1 else ""
        axes.annotate(
            f"#{here[0].pull}{more}",
            (x, 1),
            (-2, -2),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            rotation=90,
            ha="right",
            va="top",
            fontsize=8,
            color="#1c1e21" if tried else "#5d646d",
            weight="bold" if tried else "normal",
        )

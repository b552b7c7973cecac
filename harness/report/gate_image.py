"""The picture of a gate: each count that changed, and host time with its causes and intervals."""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from harness import format as fmt
from harness.report.experiment_image import GREY, PALE, VERDICT_COLOURS
from harness.report.gate_tables import value_words
from harness.report.gate_title import title
from harness.report.header import machine_words
from harness.report.image_file import image_bytes
from harness.statistics.verdict import Verdict
from harness.tracking.gate.result import GateResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH_INCHES = 9.5
_MOST = 150.0
"""Percent beyond which a change is drawn at the edge, as an arrow."""


class _Change(NamedTuple):
    """A line: a change in percent, its interval where it has one, and what stands beside it."""

    label: str
    change: float
    interval: tuple[float, float] | None
    verdict: Verdict
    note: str


def has_picture(result: GateResult) -> bool:
    """Whether a count changed or anything was timed."""
    return bool(_counts(result) or _times(result))


def gate_image(result: GateResult, suffix: str) -> bytes:
    """Exact counts, then host time per step with its parts, each cell by itself.

    A PNG or SVG file, on white. Raises ValueError where nothing was measured. Imports matplotlib
    when called.
    """
    from matplotlib.figure import Figure

    counts, times = _counts(result), _times(result)
    named = (("exact counts", counts), ("host time per step", times))
    panels = [(name, lines) for name, lines in named if lines]
    if not panels:
        raise ValueError("--image: no count changed and nothing was timed, so there is no picture")
    rows = [len(lines) for _, lines in panels]
    figure = Figure(
        figsize=(_WIDTH_INCHES, 1.3 + 0.75 * len(panels) + 0.29 * sum(rows)),
        layout="constrained",
        facecolor="white",
    )
    grids = figure.subplots(len(panels), squeeze=False, height_ratios=rows)[:, 0]
    for axes, (name, lines) in zip(grids, panels, strict=True):
        is_timed = lines is times
        _draw(axes, lines, f"{name}: change in %", result.tolerance if is_timed else 0.0)
    words = "\n".join(textwrap.wrap(title(result), 100))
    figure.suptitle(words, x=0.01, ha="left", fontsize=11, fontweight="bold")
    about = f"{', '.join(each.name for each in result.workloads)}; {machine_words(result.machine)}"
    source = "\n".join(textwrap.wrap(f"{about}; {result.command}", 150))
    figure.supxlabel(source, x=0.01, ha="left", fontsize=7.5, color=GREY)
    return image_bytes(figure, suffix, result.name)


def _counts(result: GateResult) -> list[_Change]:
    """The counts that changed, cells in which they changed alike together."""
    cells: dict[tuple[str, float, float], list[str]] = {}
    for cell in result.cells:
        for each in cell.exact:
            if each.verdict != "same" and each.before:
                cells.setdefault((each.metric, each.before, each.after), []).append(cell.id)
    known = {
        (each.metric, each.before, each.after): each for cell in result.cells for each in cell.exact
    }
    lines = []
    for key, ids in cells.items():
        each = known[key]
        which = "" if len(ids) == len(result.cells) else f" ({'; '.join(ids)})"
        note = f"{value_words(each.before, each.unit)} → {value_words(each.after, each.unit)}"
        change = 100 * (each.after / each.before - 1)
        lines.append(_Change(f"{each.metric}{which}", change, None, each.verdict, note))
    return lines


def _times(result: GateResult) -> list[_Change]:
    lines = []
    for cell in result.cells:
        if (timing := cell.timing) is None:
            continue
        steady, by = timing.steady, timing.attribution
        parts = [(cell.id, steady)]
        if by is not None and steady.verdict in ("better", "worse"):
            parts += [("by the code", by.code), ("by the collector", by.collector)]
        lines += [
            _Change(
                label,
                100 * (each.ratio - 1),
                (100 * (each.ci95[0] - 1), 100 * (each.ci95[1] - 1)),
                each.verdict,
                fmt.percent(each.ratio - 1, signed=True),
            )
            for label, each in parts
        ]
    return lines


def _draw(axes: "Axes", lines: Sequence[_Change], words: str, tolerance: float) -> None:
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
            color=VERDICT_COLOURS[line.verdict],
        )
        axes.annotate(
            line.note,
            (max(high, change), place),
            (6, 0),
            va="center",
            fontsize=8,
            textcoords="offset points",
        )
    low, high = axes.get_xlim()
    axes.set_xlim(low, high + 0.3 * (high - low))
    axes.set_yticks(range(len(lines)), [line.label for line in lines], fontsize=8.5)
    axes.set_ylim(len(lines) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color=PALE)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.set_xlabel(words, fontsize=9)

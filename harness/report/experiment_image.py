"""The picture of a comparison: where host time goes, and each change with its interval."""

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from harness import format as fmt
from harness.experiment.reference import references
from harness.experiment.result import CellResult, Comparison, ExperimentResult
from harness.render.image_file import COLOURS, image_bytes
from harness.report.answer import headline
from harness.report.header import machine_words
from harness.report.pivot import Pivot, pivots
from harness.report.summary import by_group, direction_words, metric_words, on_device

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLUE, VERMILION, GREEN = COLOURS[:3]
GREY, PALE = "#5d646d", "#e1e4e8"
VERDICT_COLOURS = {"better": GREEN, "worse": VERMILION, "same": GREY, "inconclusive": COLOURS[4]}
_ROW_INCHES, _OTHER_INCHES, _WIDTH_INCHES = 0.27, 1.75, 9.5
_TITLE_CHARACTERS = 100


class _Entry(NamedTuple):
    """A line of the picture: of a cell, or a heading over some."""

    label: str
    cell: CellResult | None
    comparison: Comparison | None = None
    is_baseline: bool = False


def experiment_image(result: ExperimentResult, suffix: str) -> bytes:
    """Own work and collections per step, and changes against the baseline, cell below cell.

    A PNG or SVG file, on white. Raises ValueError where nothing was measured. Imports matplotlib
    when called.
    """
    from matplotlib.figure import Figure

    entries = list(_entries(result))
    if not any(entry.cell for entry in entries):
        raise ValueError("--image: nothing was measured, so there is nothing to draw")
    height = _OTHER_INCHES + _ROW_INCHES * len(entries)
    figure = Figure(figsize=(_WIDTH_INCHES, height), layout="constrained", facecolor="white")
    compared = bool(result.comparisons)
    panels = figure.subplots(1, 1 + compared, squeeze=False, sharey=True)[0]
    _draw_host_time(panels[0], entries, result)
    if compared:
        _draw_changes(panels[1], entries, result)
    panels[0].set_yticks(range(len(entries)), [entry.label for entry in entries])
    for label, entry in zip(panels[0].get_yticklabels(), entries, strict=True):
        label.set_fontweight("bold" if entry.cell is None else "normal")
    panels[0].set_ylim(len(entries) - 0.4, -0.6)
    for axes in panels:
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x", color=PALE)
        axes.set_axisbelow(True)
        axes.spines[["top", "right", "left"]].set_visible(False)
    title = "\n".join(textwrap.wrap(headline(result), _TITLE_CHARACTERS))
    figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
    figure.supxlabel(_source(result), x=0.01, ha="left", fontsize=7.5, color=GREY)
    return image_bytes(figure, suffix, result.name)


def _entries(result: ExperimentResult) -> Iterator[_Entry]:
    """Cells in the order of the report's tables, below what they share."""
    tables = pivots(result)
    if not tables:
        yield from (_Entry(cell.id, cell) for group in by_group(result) for cell in group)
    for pivot, comparisons in tables:
        by_id = {each.candidate: each for each in comparisons}
        if not pivot.columns:
            listed = {pivot.baseline.id, *by_id}
            yield from (
                _entry(cell.id, cell, pivot, by_id) for cell in result.cells if cell.id in listed
            )
        for name, cells in pivot.rows.items():
            yield _Entry(name, None)
            yield from (_entry(column, cell, pivot, by_id) for column, cell in cells.items())


def _entry(label: str, cell: CellResult, pivot: Pivot, by_id: dict[str, Comparison]) -> _Entry:
    return _Entry(label, cell, by_id.get(cell.id), cell.id == pivot.baseline.id)


def _draw_host_time(axes: "Axes", entries: list[_Entry], result: ExperimentResult) -> None:
    times = [_host_time(entry.cell) for entry in entries]
    longest = max((own + collecting for own, collecting in times), default=0.0)
    unit, scale = ("ms", 1e3) if longest >= 1e-3 else ("µs", 1e6)
    places = range(len(entries))
    own = [scale * each for each, _ in times]
    collecting = [scale * each for _, each in times]
    axes.barh(places, own, 0.68, color=BLUE, label="own work")
    axes.barh(places, collecting, 0.68, left=own, color=COLOURS[4], label="collections")
    axes.set_xlim(0, 1.14 * scale * longest or 1)
    for place, entry in enumerate(entries):
        if entry.cell is not None and (total := own[place] + collecting[place]):
            axes.annotate(
                fmt.number(total),
                (total, place),
                (4, 0),
                va="center",
                fontsize=8,
                textcoords="offset points",
            )
    axes.set_xlabel(f"host time per step, {unit}{on_device(result.cells)}", fontsize=9)
    axes.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, 1.0),
        frameon=False,
        ncols=2,
        fontsize=8,
        borderaxespad=-1.6,
    )


def _host_time(cell: CellResult | None) -> tuple[float, float]:
    """Seconds per step of own work and of collections; 0 where not known."""
    if cell is None or cell.step is None:
        return 0.0, 0.0
    return cell.step.code, cell.step.young + cell.step.full


def _draw_changes(axes: "Axes", entries: list[_Entry], result: ExperimentResult) -> None:
    tolerance, off = 100 * result.tolerance, references(result)
    axes.axvspan(-tolerance, tolerance, color=PALE, zorder=0, linewidth=0)
    axes.axvline(0, color=GREY, linewidth=0.8, zorder=1)
    for place, entry in enumerate(entries):
        if entry.is_baseline:
            axes.annotate(
                "baseline",
                (0, place),
                (6, 0),
                va="center",
                fontsize=8,
                color=GREY,
                textcoords="offset points",
            )
        if (found := entry.comparison) is None:
            continue
        is_off = found.candidate in off
        colour = GREY if is_off else VERDICT_COLOURS[found.verdict]
        change, low, high = (100 * (end - 1) for end in (found.ratio, *found.ci95))
        axes.errorbar(
            change,
            place,
            xerr=[[max(change - low, 0)], [max(high - change, 0)]],
            fmt="o",
            color=colour,
            markersize=5,
            capsize=2.5,
            elinewidth=1.4,
            markerfacecolor="white" if is_off else colour,
        )
        axes.annotate(
            fmt.percent(found.ratio - 1, signed=True) + ", reference" * is_off,
            (max(high, change), place),
            (6, 0),
            va="center",
            fontsize=8,
            textcoords="offset points",
        )
    low, high = axes.get_xlim()
    axes.set_xlim(low, high + (0.3 if off else 0.16) * (high - low))
    metrics = list(dict.fromkeys(each.metric for each in result.comparisons))
    of = "; ".join(f"{metric_words(name)} ({direction_words(name)})" for name in metrics)
    axes.set_xlabel(
        f"change in %: {of}\n95 % interval; grey band: same, ±{tolerance:g} %"
        + "\nhollow: the collector off, for reference" * bool(off),
        fontsize=9,
    )


def _source(result: ExperimentResult) -> str:
    """What the figures are of, in a line or two."""
    workloads = ", ".join(each.name for each in result.workloads)
    rounds = fmt.rounds(cell.samples for cell in result.cells)
    machine = machine_words(result.machine)
    return "\n".join(textwrap.wrap(f"{workloads}; {rounds}; {machine}; {result.command}", 150))

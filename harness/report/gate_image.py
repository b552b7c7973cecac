"""The picture of a gate: each count that changed, and host time with its causes and intervals."""

import textwrap

from harness import format as fmt
from harness.render.image_file import image_bytes
from harness.report.drawn_changes import DrawnChange, draw_changes
from harness.report.experiment_image import GREY
from harness.report.gate_tables import value_words
from harness.report.gate_title import title
from harness.report.header import machine_words
from harness.tracking.gate.result import GateResult

_WIDTH_INCHES = 9.5


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
        draw_changes(axes, lines, f"{name}: change in %", result.tolerance if is_timed else 0.0)
    words = "\n".join(textwrap.wrap(title(result), 100))
    figure.suptitle(words, x=0.01, ha="left", fontsize=11, fontweight="bold")
    about = f"{', '.join(each.name for each in result.workloads)}; {machine_words(result.machine)}"
    source = "\n".join(textwrap.wrap(f"{about}; {result.command}", 150))
    figure.supxlabel(source, x=0.01, ha="left", fontsize=7.5, color=GREY)
    return image_bytes(figure, suffix, result.name)


def _counts(result: GateResult) -> list[DrawnChange]:
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
        lines.append(DrawnChange(f"{each.metric}{which}", change, None, each.verdict, note))
    return lines


def _times(result: GateResult) -> list[DrawnChange]:
    lines = []
    for cell in result.cells:
        if (timing := cell.timing) is None:
            continue
        steady, by = timing.steady, timing.attribution
        parts = [(cell.id, steady)]
        if by is not None and steady.verdict in ("better", "worse"):
            parts += [("by the code", by.code), ("by the collector", by.collector)]
        lines += [
            DrawnChange(
                label,
                100 * (each.ratio - 1),
                (100 * (each.ci95[0] - 1), 100 * (each.ci95[1] - 1)),
                each.verdict,
                fmt.percent(each.ratio - 1, signed=True),
            )
            for label, each in parts
        ]
    return lines

"""Pictures of a stored experiment's trials: samples by round, and steps with their collections."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engines.protocol import PHASES
from harness.experiment.result import CellResult, ExperimentResult, cell_id
from harness.experiment.store import read_rows, read_trial
from harness.files import StoreError
from harness.metrics import METRICS
from harness.render.image_file import COLOURS, image_bytes
from harness.report.experiment_image import BLUE, PALE
from harness.report.summary import metric_words

MOST_TIMELINES = 15
_MOST_STEPS = 2_000
_WIDTH_INCHES = 9.5


class CellSteps(NamedTuple):
    """A cell's first timed trial: seconds of each step, and its collections by generation.

    ``moments``: of steps and of collections, seconds from the first step.
    """

    cell: str
    starts: NDArray[np.float64]
    lengths: NDArray[np.float64]
    moments: list[NDArray[np.float64]]


def stored_steps(folder: Path, varying: Sequence[str]) -> list[CellSteps]:
    """A trial of each cell whose rows a run's folder keeps; cells differ in ``varying`` axes."""
    found: dict[str, CellSteps] = {}
    for path in sorted((folder / "rows").glob("*-timing-steps.parquet")):
        key = path.name.removesuffix("-steps.parquet")
        try:
            _, outcome = read_trial(folder / "trials" / f"{key}.json")
            name = cell_id(outcome.cell, varying)
            if name not in found and len(found) < MOST_TIMELINES:
                found[name] = _steps(name, path, path.with_name(f"{key}-collections.parquet"))
        except (StoreError, KeyError, IndexError):
            continue  # a picture less; the figures are not made of these rows
    return list(found.values())


def _steps(name: str, path: Path, collections_path: Path) -> CellSteps:
    rows, events = read_rows(path), read_rows(collections_path)
    starts = rows["start"][:_MOST_STEPS]
    ends = rows[PHASES[-1]][:_MOST_STEPS]
    began = starts[0]
    begins = events["start_ns"]
    inside = (begins >= began) & (begins <= ends[-1])
    moments = [
        (begins[inside & (events["generation"] == generation)] - began) / 1e9
        for generation in range(3)
    ]
    return CellSteps(name, (starts - began) / 1e9, (ends - starts) / 1e9, moments)


def timelines_image(found: Sequence[CellSteps], suffix: str, salt: str) -> bytes:
    """A panel a cell: how long each step took, when the collector ran. Imports matplotlib."""
    from matplotlib.figure import Figure

    figure = Figure(
        figsize=(_WIDTH_INCHES, 0.6 + 0.95 * len(found)), layout="constrained", facecolor="white"
    )
    panels = figure.subplots(len(found), squeeze=False, sharex=True, sharey=True)[:, 0]
    for axes, steps in zip(panels, found, strict=True):
        axes.plot(steps.starts, 1e3 * steps.lengths, ".", color=BLUE, markersize=2)
        for moments, colour, size in zip(
            steps.moments, (PALE, COLOURS[4], COLOURS[1]), (0, 5, 8), strict=True
        ):
            if size and len(moments):
                axes.plot(
                    moments,
                    np.zeros(len(moments)),
                    "|",
                    color=colour,
                    markersize=size,
                    clip_on=False,
                )
        axes.set_title(steps.cell, loc="left", fontsize=8, pad=2)
        axes.set_ylim(bottom=0)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=7)
    panels[-1].set_xlabel(
        "seconds; a dot per step: its length, ms; ticks: collections of generation 1 (short) and "
        "2 (long)",
        fontsize=8,
    )
    return image_bytes(figure, suffix, salt)


def samples_image(result: ExperimentResult, suffix: str) -> bytes:
    """What decides, a dot a round and a stroke at the median, cell below cell.

    Raises ValueError where no cell has a sample. Imports matplotlib when called.
    """
    from matplotlib.figure import Figure

    metric = result.decide[0] if result.decide else ""
    cells = [cell for cell in result.cells if metric in cell.metrics]
    if not cells:
        raise ValueError("no cell has a sample of what decides, so there is nothing to draw")
    figure = Figure(
        figsize=(_WIDTH_INCHES, 0.8 + 0.27 * len(cells)), layout="constrained", facecolor="white"
    )
    axes = figure.subplots()
    for place, cell in enumerate(cells):
        known = _known(cell, metric)
        axes.plot(
            known,
            [place] * len(known),
            "o",
            color=BLUE,
            alpha=0.45,
            markersize=5,
            markeredgewidth=0,
        )
        axes.plot([np.median(known)], [place], "|", color="black", markersize=12)
    axes.set_yticks(range(len(cells)), [cell.id for cell in cells], fontsize=8)
    axes.set_ylim(len(cells) - 0.5, -0.5)
    axes.grid(axis="x", color=PALE)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    unit = METRICS[metric].unit
    axes.set_xlabel(f"{metric_words(metric)}, {unit}; a dot per round, | median", fontsize=9)
    return image_bytes(figure, suffix, result.name)


def _known(cell: CellResult, metric: str) -> list[float]:
    return [sample for sample in cell.metrics[metric].samples if sample is not None]

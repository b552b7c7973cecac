"""The picture of how engines' host paths grew, release by release, a panel a family."""

from collections.abc import Sequence

from harness.experiment.result import ExperimentResult
from harness.render.image_file import image_bytes
from harness.report.release_lines import BYTECODES, ReleaseLine, release_lines

_COLOURS = ("#0072b2", "#d55e00")


def families_image(results: Sequence[ExperimentResult]) -> bytes:
    """Bytecodes along the releases, each panel from 0 on and on a scale of its own: a PNG file.

    What a step contains differs between the families, so no two panels are to be compared.
    Imports matplotlib when called.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.8), layout="constrained", facecolor="white")
    panels = figure.subplots(1, len(results), squeeze=False)[0]
    for axes, result in zip(panels, results, strict=True):
        along = release_lines(result)
        for line, colour in zip(along.lines, _COLOURS, strict=False):
            heights = line.medians(BYTECODES)
            axes.plot(range(len(heights)), heights, "o-", color=colour, label=_without_policy(line))
        axes.set_xticks(range(len(along.releases)), along.releases, rotation=60, fontsize=8)
        axes.set_ylim(bottom=0)
        axes.set_title(along.known.name, loc="left", fontsize=11)
        axes.grid(axis="y", color="#e1e4e8")
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        if len(along.lines) > 1:
            axes.legend(loc="lower right", frameon=False, fontsize=8)
    panels[0].set_ylabel("bytecodes per request and step")
    return image_bytes(figure, ".png", "families")


def _without_policy(line: ReleaseLine) -> str:
    return line.name.removeprefix(f"{line.policy} · ")

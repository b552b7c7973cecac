"""The picture of what a step of each vLLM release costs by its batch and context."""

from collections.abc import Mapping
from typing import Any

from harness.render.image_file import image_bytes

_PANELS = {
    "fixed": "of a step, whatever its batch",
    "row": "of each request in it",
    "block": "of each block of the KV cache",
    "prompt": "of each token of a prompt",
}


def step_parts_image(document: Mapping[str, Any]) -> bytes:
    """A panel a part that is not 0, each from 0 on: a PNG file. Imports matplotlib when called."""
    from matplotlib.figure import Figure

    releases = document["releases"]
    figure = Figure(figsize=(10, 5.2), layout="constrained", facecolor="white")
    panels = figure.subplots(2, 2, sharex=True).ravel()
    places = range(len(releases))
    for axes, (part, words) in zip(panels, _PANELS.items(), strict=True):
        heights = [each[part] for each in releases.values()]
        before = [heights[0], *heights[:-1]]
        grew = [
            "#d55e00" if now > then else "#56b4e9"
            for now, then in zip(heights, before, strict=True)
        ]
        axes.bar(places, heights, color=grew, width=0.8)
        axes.set_title(f"bytecodes {words}", loc="left", fontsize=10)
        axes.set_xticks(places, list(releases), rotation=60, fontsize=7)
        axes.grid(axis="y", color="#e1e4e8")
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(
        f"vLLM's host path by release, CPython {document['machine']['python']}; "
        "orange: more than before",
        x=0.01,
        ha="left",
        fontsize=11,
    )
    return image_bytes(figure, ".png", "step-parts")

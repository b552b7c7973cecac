"""The chart of `gcbench explain --image`: a step's bytecodes by version and stage."""

from harness.explain.result import ExplainResult, GrowthBody, RequestStageCost
from harness.render.image_file import COLOURS, image_bytes

_OTHERS = "#9aa0a6"
_LEAST = 0.01
"""Share of a step that is seen in a bar."""


def growth_image(result: ExplainResult, body: GrowthBody, suffix: str) -> bytes:
    """A bar a version, its parts the stages of a step, as a PNG or SVG file on white.

    The largest stages have a colour each, the others one together. Imports matplotlib when called.
    """
    from matplotlib.figure import Figure

    versions = body.versions
    width = min(14.0, max(7.0, 2 + 0.42 * len(versions)))
    figure = Figure(figsize=(width, 5), layout="constrained", facecolor="white")
    axes = figure.subplots()
    places, base = range(len(versions)), [0.0] * len(versions)
    names = _largest_stages(body)
    for number, name in enumerate([*names, "others"]):
        parts = [
            each.stages.get(name, RequestStageCost()).bytecodes
            if name in names
            else sum(cost.bytecodes for stage, cost in each.stages.items() if stage not in names)
            for each in versions
        ]
        if not any(parts):
            continue
        colour = COLOURS[number] if name in names else _OTHERS
        axes.bar(places, parts, bottom=base, label=name, color=colour, width=0.75)
        base = [low + part for low, part in zip(base, parts, strict=True)]
    for place, top in enumerate(base):
        axes.annotate(
            f"{top:,.0f}", (place, top), (0, 2), textcoords="offset points", ha="center", fontsize=7
        )
    axes.set_ylim(0, max(base, default=1.0) * 1.22)
    labels = [each.label for each in versions]
    axes.set_xticks(list(places), labels, rotation=60 if len(labels) > 8 else 0)
    axes.set_ylabel("bytecodes per request and step")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="upper left", frameon=False, ncols=4, fontsize=8)
    axes.set_title(
        f"A step of {result.axes['engine']} by version: {result.workloads[0].name}, "
        f"{result.workloads[0].num_requests:,} requests",
        loc="left",
        fontsize=11,
    )
    return image_bytes(figure, suffix, result.name)


def _largest_stages(body: GrowthBody) -> list[str]:
    """By their largest share of any version, the largest first; as many as there are colours."""
    largest: dict[str, float] = {}
    for version in body.versions:
        for stage, cost in version.stages.items():
            share = cost.bytecodes / version.bytecodes
            largest[stage] = max(largest.get(stage, 0.0), share)
    seen = [stage for stage, share in largest.items() if share >= _LEAST]
    return sorted(seen, key=lambda stage: -largest[stage])[: len(COLOURS)]

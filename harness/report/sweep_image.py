"""A sweep as a picture: latency against throughput."""

from harness.load.sweep import SweepResult
from harness.render.image_file import COLOURS, image_bytes

_LATENCIES = {
    "ttft_median": "time to first token",
    "tpot_median": "time per output token",
    "e2el_median": "last token",
}


def sweep_image(result: SweepResult, suffix: str) -> bytes:
    """A line per latency, logarithmic. Imports matplotlib when called."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.5, 4.4), layout="constrained", facecolor="white")
    axes = figure.subplots()
    if result.knee is not None:
        low, high = result.knee.ci95
        scale = result.knee.capacity / result.knee.value
        axes.axvspan(low * scale, high * scale, color="#e1e4e8", label="throughput ends here")
    for (name, label), colour in zip(_LATENCIES.items(), COLOURS, strict=False):
        known = [
            (each.steady.served, 1e3 * value)
            for each in result.points
            if each.steady is not None and (value := each.latencies.get(name))
        ]
        if known:
            axes.plot(*zip(*known, strict=True), "o-", color=colour, label=label, markersize=4)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_xlim(left=0)
    axes.set_xlabel("requests per second that the server gave", fontsize=9)
    axes.set_ylabel("median latency, ms", fontsize=9)
    axes.tick_params(labelsize=8)
    axes.grid(color="#e1e4e8")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)
    return image_bytes(figure, suffix, result.name)

"""A workload's lengths and arrivals as a picture."""

from harness.render.image_file import image_bytes
from workloads.summary import Bins, Summary


def workload_image(summary: Summary, suffix: str) -> bytes:
    """Lengths and arrivals as a PNG or SVG file; imports matplotlib when called."""
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    def histogram(axes: Axes, bins: Bins, label: str) -> None:
        axes.stairs(bins.counts, bins.edges, fill=True)
        axes.set_xlabel(label)
        axes.set_ylabel("requests")
        if bins.is_log:
            axes.set_xscale("log")

    figure = Figure(figsize=(10, 6), layout="constrained")
    has_times = summary.arrivals.last_seconds > 0
    axes = figure.subplot_mosaic("PO;AA" if has_times else "PO")
    histogram(axes["P"], summary.prompt_tokens.bins, "prompt tokens")
    histogram(axes["O"], summary.output_tokens.bins, "output tokens")
    if has_times:
        bins = summary.arrivals.bins
        rates = [count * len(bins.counts) / summary.arrivals.last_seconds for count in bins.counts]
        axes["A"].stairs(rates, bins.edges, fill=True)
        axes["A"].set_xlabel("seconds")
        axes["A"].set_ylabel("requests per second")
    figure.suptitle(
        f"{summary.name}: {summary.num_requests:,} requests, seed {summary.seed}, "
        f"hash {summary.hash[:12]}"
    )
    return image_bytes(figure, suffix, summary.hash)

"""The plots of `gcbench workload show` as an image."""

import io
from pathlib import Path

from workloads.summary import Bins, Summary

FORMATS = (".png", ".svg")


def workload_image(summary: Summary, suffix: str) -> bytes:
    """Lengths and arrivals as a PNG or SVG file; imports matplotlib when called."""
    from matplotlib import rc_context
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
        axes["A"].set_ylabel("requests a second")
    figure.suptitle(
        f"{summary.name}: {summary.num_requests:,} requests, seed {summary.seed}, "
        f"hash {summary.hash[:12]}"
    )
    image = io.BytesIO()
    # Without a date and a random salt, equal schedules give equal files.
    with rc_context({"svg.hashsalt": summary.hash}):
        metadata = {"Date": None} if suffix == ".svg" else None
        figure.savefig(image, format=suffix.lstrip("."), dpi=120, metadata=metadata)
    return image.getvalue()


def image_suffix(path: Path) -> str:
    """Which of `FORMATS` a file's name asks for. Raises ValueError for another."""
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise ValueError(f"--image {path}: the name must end in {' or '.join(FORMATS)}")
    return suffix

"""A stored load as pictures: how latencies are distributed, and what happened when."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.render.image_file import COLOURS, image_bytes

RequestRows = Mapping[str, NDArray[Any]]
"""Columns of the stored requests, and of the deliveries."""


def distribution_image(requests: RequestRows, suffix: str, salt: str) -> bytes:
    """Shares of requests that waited at most so long: TTFT, TPOT, last token. Imports matplotlib
    when called.
    """
    from matplotlib.figure import Figure

    done = requests["finish_reason"] >= 0
    first, last, sent, tokens = (
        requests[name][done] for name in ("first_ns", "last_ns", "sent_ns", "num_tokens")
    )
    several = tokens > 1
    values = {
        "time to first token": (first - sent) / 1e6,
        "time per output token": ((last - first) / np.maximum(tokens - 1, 1))[several] / 1e6,
        "last token": (last - sent) / 1e6,
    }
    figure = Figure(figsize=(9.5, 3.6), layout="constrained", facecolor="white")
    axes = figure.subplots()
    for (label, each), colour in zip(values.items(), COLOURS, strict=False):
        if len(each):
            shares = 100 * np.arange(1, len(each) + 1) / len(each)
            axes.step(np.sort(each), shares, where="post", color=colour, label=label)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("ms", fontsize=9)
    axes.set_ylabel("% of completed requests", fontsize=9)
    _dress(axes)
    axes.legend(frameon=False, fontsize=8)
    return image_bytes(figure, suffix, salt)


def timeline_image(requests: RequestRows, deliveries: RequestRows, suffix: str, salt: str) -> bytes:
    """Requests in flight, each one's TTFT, and deliveries per second, over the run. Imports
    matplotlib when called.
    """
    from matplotlib.figure import Figure

    asked = requests["sent_ns"] > 0
    done = requests["finish_reason"] >= 0
    begin = int(requests["sent_ns"][asked].min())
    sent, last = requests["sent_ns"][done], requests["last_ns"][done]
    figure = Figure(figsize=(9.5, 5.4), layout="constrained", facecolor="white")
    flight, ttft, speed = figure.subplots(3, 1, sharex=True)
    moments = np.concatenate([sent, last])
    order = np.argsort(moments, kind="stable")
    steps = np.repeat([1, -1], [len(sent), len(last)])[order].cumsum()
    flight.step((moments[order] - begin) / 1e9, steps, where="post", color=COLOURS[0])
    flight.set_ylabel("in flight", fontsize=9)
    waited = (requests["first_ns"][done] - sent) / 1e6
    ttft.plot((sent - begin) / 1e9, waited, ".", color=COLOURS[1], markersize=3)
    ttft.set_ylabel("TTFT, ms", fontsize=9)
    at = (deliveries["delivered_ns"] - begin) / 1e9
    bins = np.linspace(0, max(float(at.max(initial=0)), 1e-3), 100)
    counts, edges = np.histogram(at, bins)
    speed.stairs(counts / np.diff(edges), edges, color=COLOURS[2], fill=True)
    speed.set_ylabel("deliveries/s", fontsize=9)
    speed.set_xlabel("seconds since the first request", fontsize=9)
    for axes in (flight, ttft, speed):
        axes.set_ylim(bottom=0)
        _dress(axes)
    return image_bytes(figure, suffix, salt)


def _dress(axes: Any) -> None:
    axes.tick_params(labelsize=8)
    axes.grid(color="#e1e4e8")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)

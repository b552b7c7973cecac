"""The worst stall of a run under load as a picture: tokens, and the pause between them."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engines.protocol import Int64Array
from harness import format as fmt
from harness.load.attribution import REST, SERVER, SEVERAL, Attribution, SlowWaits
from harness.load.observed import Observed
from harness.probed.read_log import Collections
from harness.render.image_file import COLOURS, image_bytes
from harness.report.attribution import cause_label
from harness.report.collection_words import kind_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_STREAMS = 24
_GREY = "#8c959f"
_LEAST_WAITS = 6
"""So many usual waits are shown on either side of the stall at least."""


class _Window(NamedTuple):
    """``streams``: whose stall it is, by number of the request; those that are drawn."""

    began_ns: int
    ended_ns: int
    streams: Int64Array
    num_streams: int

    def seconds(self, moments: Int64Array) -> NDArray[np.float64]:
        """From its begin; cut at its ends."""
        inside = np.clip(moments, self.began_ns, self.ended_ns)
        return (inside - self.began_ns) / 1e9


def stall_image(
    observed: Observed, collections: Collections, found: Attribution, slow: SlowWaits, suffix: str
) -> bytes:
    """Moments before and after the pause for which streams waited longest, or the longest wait.

    A row per process of the server with its collections, and a row per stream: a dot per token, a
    bar per slow wait in the colour of its cause. Raises ValueError where nothing was slow. Imports
    matplotlib when called.
    """
    from matplotlib.figure import Figure

    window = _window(found, slow)
    figure = Figure(figsize=(9.5, 4.8), layout="constrained", facecolor="white")
    axes = figure.subplots()
    names = _draw_processes(axes, window, collections, found)
    _draw_streams(axes, window, observed, slow, found)
    rows = len(window.streams)
    streams = f"{rows} of\n{fmt.count(window.num_streams)}\nstreams"
    places = [-2 - 2 * place for place in range(len(names))]
    axes.set_yticks([*places, (rows - 1) / 2], [*names, streams], fontsize=8)
    axes.set_ylim(rows, -2.8 - 2 * max(len(names) - 1, 0))
    axes.set_xlim(0, (window.ended_ns - window.began_ns) / 1e9)
    axes.set_xlabel("seconds; a dot per token, a bar per slow wait", fontsize=9)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=8)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.set_title(_title(found), loc="left", fontsize=10)
    handles, labels = axes.get_legend_handles_labels()
    by_label = dict(zip(labels, handles, strict=True))
    figure.legend(
        by_label.values(),
        by_label.keys(),
        loc="outside lower left",
        ncols=2,
        frameon=False,
        fontsize=8,
    )
    return image_bytes(figure, suffix, str(observed.start_ns))


def _window(found: Attribution, slow: SlowWaits) -> _Window:
    waits = slow.waits
    if not len(waits.request):
        raise ValueError("--image: nothing was slow, so there is no stall to draw")
    if found.pauses:
        worst = found.pauses[0]
        began, ended = worst.start_ns, worst.start_ns + round(1e9 * worst.seconds)
    else:
        longest = int(waits.excess_ns.argmax())
        began, ended = int(waits.began_ns[longest]), int(waits.ended_ns[longest])
    stopped = waits.only((waits.began_ns <= ended) & (waits.ended_ns >= ended))
    whose = np.unique(stopped.request)
    drawn = whose[np.linspace(0, len(whose) - 1, min(len(whose), MOST_STREAMS)).round().astype(int)]
    side = max(ended - began, _LEAST_WAITS * int(np.median(stopped.usual_ns)))
    return _Window(began - side, ended + side, drawn, len(whose))


def _colour(place: int, found: Attribution) -> str:
    """Of a cause by its place."""
    return _GREY if found.causes[place].cause in (REST, SEVERAL) else COLOURS[place % len(COLOURS)]


def _draw_processes(
    axes: "Axes", window: _Window, collections: Collections, found: Attribution
) -> list[str]:
    """A bar per collection, a row per process of the server that has one; their names."""
    ends = collections.start_ns + collections.duration_ns
    inside = (ends > window.began_ns) & (collections.start_ns < window.ended_ns)
    colours = {
        each.pid: _colour(place, found)
        for place, each in enumerate(found.causes)
        if each.cause == SERVER
    }
    pids = list(dict.fromkeys(collections.pid[inside].tolist()))
    for place, pid in enumerate(pids):
        own = inside & (collections.pid == pid)
        begin, end = window.seconds(collections.start_ns[own]), window.seconds(ends[own])
        colour = colours.get(pid, _GREY)
        spans = list(zip(begin.tolist(), (end - begin).tolist(), strict=True))
        axes.broken_barh(
            spans, (-2.6 - 2 * place, 1.2), facecolors=colour, edgecolor=colour, linewidth=0.4
        )
    named = {pid: fmt.printable(collections.names.get(pid, "python")) for pid in pids}
    return [f"collections of\n{named[pid]} ({pid})" for pid in pids]


def _draw_streams(
    axes: "Axes", window: _Window, observed: Observed, slow: SlowWaits, found: Attribution
) -> None:
    responses, waits = observed.responses, slow.waits
    first = np.cumsum(responses.num_deliveries) - responses.num_deliveries
    inside = (waits.ended_ns > window.began_ns) & (waits.began_ns < window.ended_ns)
    for row, request in enumerate(window.streams.tolist()):
        own = inside & (waits.request == request)
        begin, end = window.seconds(waits.began_ns[own]), window.seconds(waits.ended_ns[own])
        for place, left, right in zip(slow.cause[own].tolist(), begin, end, strict=True):
            axes.hlines(
                row,
                left,
                right,
                color=_colour(place, found),
                linewidth=3.5,
                alpha=0.6,
                label=cause_label(found.causes[place]),
            )
        moments = responses.delivered_ns[first[request] :][: responses.num_deliveries[request]]
        seen = moments[(moments >= window.began_ns) & (moments <= window.ended_ns)]
        axes.plot(window.seconds(seen), np.full(len(seen), row), ".", color="#1f2328", markersize=3)


def _title(found: Attribution) -> str:
    if not found.pauses:
        return "The longest wait for a token"
    worst = found.pauses[0]
    return (
        f"A collection ({kind_words(worst.generation, worst.python)}) stopped "
        f"{fmt.printable(worst.process)} ({worst.pid}) for {fmt.seconds(worst.seconds)}, and "
        f"{fmt.count(worst.gaps + worst.first_tokens)} streams with it"
    )

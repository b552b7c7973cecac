"""A run under load as a trace for https://ui.perfetto.dev: requests, slow gaps, collections."""

from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from harness.load.attribution import Attribution, SlowWaits
from harness.load.observed import Observed
from harness.probed.read_log import Collections
from harness.render.trace_file import PerfettoTrace, Slice
from harness.report.attribution import cause_label
from harness.report.collection_words import kind_words
from harness.report.perfetto import add_requests
from harness.trial.recorder import RequestStamps


def load_trace(
    observed: Observed,
    requests: RequestStamps,
    collections: Collections,
    attribution: Attribution,
    slow: SlowWaits,
) -> bytes:
    """A trace of Perfetto's protocol buffers, by CLOCK_MONOTONIC of the host that all ran on.

    Collections have a track for each process and generation; of client processes there are the
    pauses and when their loops were late. Each slow wait is inside its request and bears the name
    of its cause. What ended before the run began, or began after its end, is left out.
    """
    sent = requests.sent_ns[requests.sent_ns > 0]
    began_ns = int(sent.min()) if len(sent) else observed.start_ns
    ended_ns = max(int(observed.recording.ended_ns.max(initial=0)), began_ns)
    trace = PerfettoTrace(began_ns)
    _add_servers(trace, collections, began_ns, ended_ns)
    for stops in observed.stops:
        process = trace.track(f"client process {stops.process}")
        for title, name, spans in (
            ("collections", "collection", stops.pauses),
            ("loop late", "late", stops.late),
        ):
            seen = [(max(start, began_ns), end) for start, end in spans if end > began_ns]
            _add_spans(trace, process, title, name, seen)
    waits = defaultdict[int, list[Slice]](list)
    columns = (slow.cause, slow.waits.request, slow.waits.began_ns, slow.waits.ended_ns)
    for cause, request, begin, end in zip(*(each.tolist() for each in columns), strict=True):
        waits[request].append(Slice(cause_label(attribution.causes[cause]), begin, end))
    add_requests(
        trace, {name: np.asarray(each) for name, each in requests._asdict().items()}, waits
    )
    return trace.content()


def _add_servers(trace: PerfettoTrace, found: Collections, began_ns: int, ended_ns: int) -> None:
    end_ns = found.start_ns + found.duration_ns
    seen = (end_ns > began_ns) & (found.start_ns < ended_ns)
    for pid in dict.fromkeys(found.pid[seen].tolist()):
        process = trace.track(f"collections in {found.names.get(pid, 'python')} ({pid})")
        for generation in range(3):
            own = seen & (found.pid == pid) & (found.generation == generation)
            starts = np.maximum(found.start_ns[own], began_ns).tolist()
            spans = zip(starts, end_ns[own].tolist(), strict=True)
            name = kind_words(generation, found.pythons.get(pid, ""))
            _add_spans(trace, process, name, name, spans)


def _add_spans(
    trace: PerfettoTrace, parent: int, title: str, name: str, spans: Iterable[tuple[int, int]]
) -> None:
    track = trace.track(title, parent)
    for start_ns, end_ns in spans:
        trace.slice(track, name, start_ns, end_ns)

"""A timing trial as a trace for https://ui.perfetto.dev: steps, collections and requests."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from engines.protocol import PHASES, FinishReason
from harness.experiment.store import RowColumns, TrialRows
from harness.render.trace_file import PerfettoTrace, Slice
from harness.report.collection_words import kind_words

MOST_REQUESTS = 2000
"""Shown, those that were queued first: each takes a row of pixels while it is served."""

NOTHING: Mapping[int, Sequence[Slice]] = {}
_STEP_FACTS = ("num_rows", "num_tokens", "in_flight", "waited_ns", "processing_ns")
_WAIT_FACTS = ("device_ns", "late_ns", "device_length_ns")


def perfetto_trace(rows: TrialRows, roles: Sequence[str], python: str = "") -> bytes:
    """A trace of Perfetto's protocol buffers; ``roles``: those of `TrialResult.processes`,
    which ran on ``python``.

    Times are nanoseconds of CLOCK_MONOTONIC. A step has its phases inside. The time for which it
    was blocked on the device is as long as it was stamped and put at the end of the wait phase.
    Collections have a track for each process and kind. A request lasts from ``queued_ns`` to
    its last token, and the name of its track says how many are not shown. Rows of a trial that took
    turns with others (`Trial.slice_steps`) do not fit together: its requests' clock was stopped.
    The format: https://perfetto.dev/docs/reference/trace-packet-proto.
    """
    trace = PerfettoTrace(_first_ns(rows))
    _add_steps(trace, rows.steps)
    _add_waits(trace, rows.steps)
    _add_collections(trace, rows.collections, roles, python)
    add_requests(trace, rows.requests)
    return trace.content()


def _first_ns(rows: TrialRows) -> int:
    queued = rows.requests["queued_ns"]
    stamps = (queued[queued > 0], rows.steps["start"], rows.collections["start_ns"])
    return min((int(each.min()) for each in stamps if len(each)), default=0)


def _records(table: RowColumns) -> list[dict[str, int]]:
    """A table's rows, of Python's integers."""
    columns = (column.tolist() for column in table.values())
    return [dict(zip(table, row, strict=True)) for row in zip(*columns, strict=True)]


def _add_steps(trace: PerfettoTrace, steps: RowColumns) -> None:
    track = trace.track("steps")
    for number, step in enumerate(_records(steps)):
        facts = {name: step[name] for name in _STEP_FACTS}
        trace.begin(track, "step", step["start"], step=number, **facts)
        for before, phase in pairwise(("start", *PHASES)):
            if step[phase] > step[before]:
                trace.slice(track, phase, step[before], step[phase])
        trace.end(track, step["delivered"])


def _add_waits(trace: PerfettoTrace, steps: RowColumns) -> None:
    track = trace.track("blocked on the device")
    begins = PHASES[PHASES.index("wait") - 1]
    for number, step in enumerate(_records(steps)):
        blocked_ns = min(step["device_ns"], step["wait"] - step[begins])
        if blocked_ns > 0:
            facts = {name: step[name] for name in _WAIT_FACTS}
            trace.slice(
                track, "blocked", step["wait"] - blocked_ns, step["wait"], step=number, **facts
            )


def _add_collections(
    trace: PerfettoTrace, collections: RowColumns, roles: Sequence[str], python: str
) -> None:
    titles, records = _process_titles(roles), _records(collections)
    processes: dict[int, int] = {}
    tracks: dict[tuple[int, int], int] = {}
    for place, generation in sorted({(each["process"], each["generation"]) for each in records}):
        if place not in processes:
            processes[place] = trace.track(f"collections in {titles[place]}")
        tracks[place, generation] = trace.track(kind_words(generation, python), processes[place])
    for each in records:
        generation, start_ns = each["generation"], each["start_ns"]
        trace.slice(
            tracks[each["process"], generation],
            kind_words(generation, python),
            start_ns,
            start_ns + each["duration_ns"],
            collected=each["collected"],
            cpu_ns=each["cpu_ns"],
        )


def _process_titles(roles: Sequence[str]) -> list[str]:
    """The roles, numbered from 1 where several processes have the same."""
    count, seen = Counter(roles), Counter[str]()
    titles = []
    for role in roles:
        seen[role] += 1
        titles.append(f"{role} {seen[role]}" if count[role] > 1 else role)
    return titles


def add_requests(
    trace: PerfettoTrace, requests: RowColumns, inside: Mapping[int, Sequence[Slice]] = NOTHING
) -> None:
    """Each request's wait for its first token and the rest, with slices ``inside`` by request."""
    served = np.flatnonzero(requests["first_ns"])
    shown = served[np.argsort(requests["queued_ns"][served], kind="stable")][:MOST_REQUESTS]
    title = _requests_title(len(requests["first_ns"]), len(served), len(shown))
    records = _records({name: column[shown] for name, column in requests.items()})
    for number, request in zip(shown.tolist(), records, strict=True):
        facts: dict[str, int | str] = {
            "num_tokens": request["num_tokens"],
            "ttft_ns": request["first_ns"] - request["sent_ns"],
        }
        if request["finish_reason"] >= 0:
            facts["finish_reason"] = FinishReason(request["finish_reason"]).name
        track = trace.track(title, is_shared=True)
        trace.begin(track, f"request {number}", request["queued_ns"], **facts)
        parts = [("to the first token", request["queued_ns"], request["first_ns"])]
        if request["last_ns"] > request["first_ns"]:
            parts.append(("further tokens", request["first_ns"], request["last_ns"]))
        for name, start_ns, end_ns in parts:
            trace.begin(track, name, start_ns)
            for each in inside.get(number, ()):
                if start_ns < each.end_ns <= end_ns:
                    trace.slice(track, each.name, max(start_ns, each.start_ns), each.end_ns)
            trace.end(track, end_ns)
        trace.end(track, request["last_ns"])


def _requests_title(num_requests: int, num_served: int, num_shown: int) -> str:
    if num_shown == num_requests:
        return "requests"
    left_out = {"later": num_served - num_shown, "without a token": num_requests - num_served}
    reasons = [f"{number:,} {why}" for why, number in left_out.items() if number]
    return f"requests ({num_shown:,} of {num_requests:,}; not shown: {', '.join(reasons)})"

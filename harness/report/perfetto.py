"""A timing trial as a trace for https://ui.perfetto.dev: steps, collections and requests."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from perfetto.trace_builder.proto_builder import TraceProtoBuilder  # type: ignore[import-untyped]

from engines.protocol import PHASES, FinishReason
from harness.experiment.store import Columns, TrialRows

MOST_REQUESTS = 2000
"""Shown, those that were queued first: each takes a row of pixels while it is served."""

_MONOTONIC = 3  # BuiltinClock of Perfetto: what `time.perf_counter_ns` reads on Linux
_ONE_WRITER = 1
_STEP_FACTS = ("num_rows", "num_tokens", "in_flight", "waited_ns", "processing_ns")
_WAIT_FACTS = ("device_ns", "late_ns", "device_length_ns")


def perfetto_trace(rows: TrialRows, roles: Sequence[str]) -> bytes:
    """A trace of Perfetto's protocol buffers; ``roles``: those of `TrialResult.processes`.

    Times are nanoseconds of CLOCK_MONOTONIC. A step has its phases inside. The time for which it
    was blocked on the device is as long as it was stamped and put at the end of the wait phase.
    Collections have a track for each process and generation. A request lasts from ``queued_ns`` to
    its last token, and the name of its track says how many are not shown. Rows of a trial that took
    turns with others (`Trial.slice_steps`) do not fit together: its requests' clock was stopped.
    The format: https://perfetto.dev/docs/reference/trace-packet-proto.
    """
    trace = _Trace(_first_ns(rows))
    _add_steps(trace, rows.steps)
    _add_waits(trace, rows.steps)
    _add_collections(trace, rows.collections, roles)
    _add_requests(trace, rows.requests)
    return trace.content()


class _Trace:
    def __init__(self, began_ns: int) -> None:
        self._builder = TraceProtoBuilder()
        self._num_tracks = 0
        # Times are shown as they are; readers take another clock for granted.
        snapshot = self._packet(began_ns).clock_snapshot
        snapshot.primary_trace_clock = _MONOTONIC
        snapshot.clocks.add(clock_id=_MONOTONIC, timestamp=began_ns)

    def track(self, name: str, parent: int = 0, *, is_shared: bool = False) -> int:
        """A new track; ``is_shared``: shown as one with others of its name, on rows of its own."""
        self._num_tracks += 1
        described = self._packet().track_descriptor
        described.uuid, described.name = self._num_tracks, name
        if parent:
            described.parent_uuid = parent
        described.sibling_merge_behavior = (
            described.SIBLING_MERGE_BEHAVIOR_BY_TRACK_NAME
            if is_shared
            else described.SIBLING_MERGE_BEHAVIOR_NONE
        )
        return self._num_tracks

    def begin(self, track: int, name: str, at_ns: int, **facts: int | str) -> None:
        """Begin a slice, inside those of the track that have not ended."""
        event = self._packet(at_ns).track_event
        event.type, event.track_uuid, event.name = event.TYPE_SLICE_BEGIN, track, name
        for key, fact in facts.items():
            if isinstance(fact, str):
                event.debug_annotations.add(name=key, string_value=fact)
            else:
                event.debug_annotations.add(name=key, int_value=fact)

    def end(self, track: int, at_ns: int) -> None:
        """End the slice of the track that began last."""
        event = self._packet(at_ns).track_event
        event.type, event.track_uuid = event.TYPE_SLICE_END, track

    def slice(self, track: int, name: str, start_ns: int, end_ns: int, **facts: int | str) -> None:
        """A slice that has no other inside."""
        self.begin(track, name, start_ns, **facts)
        self.end(track, end_ns)

    def content(self) -> bytes:
        """All of it, serialized."""
        content: bytes = self._builder.serialize()
        return content

    def _packet(self, at_ns: int | None = None) -> Any:
        packet = self._builder.add_packet()
        packet.trusted_packet_sequence_id = _ONE_WRITER
        if at_ns is not None:
            packet.timestamp, packet.timestamp_clock_id = at_ns, _MONOTONIC
        return packet


def _first_ns(rows: TrialRows) -> int:
    queued = rows.requests["queued_ns"]
    stamps = (queued[queued > 0], rows.steps["start"], rows.collections["start_ns"])
    return min((int(each.min()) for each in stamps if len(each)), default=0)


def _records(table: Columns) -> list[dict[str, int]]:
    """A table's rows, of Python's integers."""
    columns = (column.tolist() for column in table.values())
    return [dict(zip(table, row, strict=True)) for row in zip(*columns, strict=True)]


def _add_steps(trace: _Trace, steps: Columns) -> None:
    track = trace.track("steps")
    for number, step in enumerate(_records(steps)):
        facts = {name: step[name] for name in _STEP_FACTS}
        trace.begin(track, "step", step["start"], step=number, **facts)
        for before, phase in pairwise(("start", *PHASES)):
            if step[phase] > step[before]:
                trace.slice(track, phase, step[before], step[phase])
        trace.end(track, step["delivered"])


def _add_waits(trace: _Trace, steps: Columns) -> None:
    track = trace.track("blocked on the device")
    begins = PHASES[PHASES.index("wait") - 1]
    for number, step in enumerate(_records(steps)):
        blocked_ns = min(step["device_ns"], step["wait"] - step[begins])
        if blocked_ns > 0:
            facts = {name: step[name] for name in _WAIT_FACTS}
            trace.slice(
                track, "blocked", step["wait"] - blocked_ns, step["wait"], step=number, **facts
            )


def _add_collections(trace: _Trace, collections: Columns, roles: Sequence[str]) -> None:
    titles, records = _process_titles(roles), _records(collections)
    processes: dict[int, int] = {}
    tracks: dict[tuple[int, int], int] = {}
    for place, generation in sorted({(each["process"], each["generation"]) for each in records}):
        if place not in processes:
            processes[place] = trace.track(f"collections in {titles[place]}")
        tracks[place, generation] = trace.track(f"generation {generation}", processes[place])
    for each in records:
        generation, start_ns = each["generation"], each["start_ns"]
        trace.slice(
            tracks[each["process"], generation], f"generation {generation}",
            start_ns, start_ns + each["duration_ns"],
            collected=each["collected"], cpu_ns=each["cpu_ns"],
        )  # fmt: skip


def _process_titles(roles: Sequence[str]) -> list[str]:
    """The roles, numbered from 1 where several processes have the same."""
    count, seen = Counter(roles), Counter[str]()
    titles = []
    for role in roles:
        seen[role] += 1
        titles.append(f"{role} {seen[role]}" if count[role] > 1 else role)
    return titles


def _add_requests(trace: _Trace, requests: Columns) -> None:
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
        trace.slice(track, "to the first token", request["queued_ns"], request["first_ns"])
        if request["last_ns"] > request["first_ns"]:
            trace.slice(track, "further tokens", request["first_ns"], request["last_ns"])
        trace.end(track, request["last_ns"])


def _requests_title(num_requests: int, num_served: int, num_shown: int) -> str:
    if num_shown == num_requests:
        return "requests"
    left_out = {"later": num_served - num_shown, "without a token": num_requests - num_served}
    reasons = [f"{number:,} {why}" for why, number in left_out.items() if number]
    return f"requests ({num_shown:,} of {num_requests:,}; not shown: {', '.join(reasons)})"

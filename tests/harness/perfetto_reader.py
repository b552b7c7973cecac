"""Reads a trace back by Perfetto's own classes, and holds it to the rows that it is made of."""

from collections import Counter
from itertools import pairwise
from typing import NamedTuple

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

from engines.protocol import PHASES


class Slice(NamedTuple):
    """``track``: names from the topmost track down; ``depth``: slices that it lies in."""

    track: tuple[str, ...]
    name: str
    start_ns: int
    end_ns: int
    depth: int
    facts: dict[str, int | str]


def read_back(content):
    """All slices. Fails where they do not nest, time runs backwards or a clock is missing."""
    packets = Trace.FromString(content).packet
    assert {packet.trusted_packet_sequence_id for packet in packets} == {1}
    snapshot = packets[0].clock_snapshot
    assert (snapshot.primary_trace_clock, [each.clock_id for each in snapshot.clocks]) == (3, [3])
    tracks, begun, slices, now = {}, {}, [], {}
    for packet in packets[1:]:
        if packet.HasField("track_descriptor"):
            described = packet.track_descriptor
            above = tracks[described.parent_uuid] if described.parent_uuid else ()
            assert described.uuid not in tracks
            tracks[described.uuid] = (*above, described.name)
            continue
        event, at_ns = packet.track_event, packet.timestamp
        assert packet.timestamp_clock_id == 3
        assert at_ns >= now.get(event.track_uuid, packets[0].timestamp)
        now[event.track_uuid] = at_ns
        open_ = begun.setdefault(event.track_uuid, [])
        if event.type == event.TYPE_SLICE_BEGIN:
            open_.append((event, at_ns))
            continue
        assert event.type == event.TYPE_SLICE_END
        beginning, start_ns = open_.pop()
        facts = {
            each.name: getattr(each, each.WhichOneof("value"))
            for each in beginning.debug_annotations
        }
        slices.append(
            Slice(tracks[event.track_uuid], beginning.name, start_ns, at_ns, len(open_), facts)
        )
    assert not any(begun.values())
    return slices


def top_level(slices, track):
    """Those of a track, without what lies inside of others; "requests (…" is "requests" too."""
    return [each for each in slices if not each.depth and each.track[0].split(" (")[0] == track]


def expected(rows, titles):
    """How often each slice should be there, made from the rows alone."""
    found = Counter()
    steps, events, requests = rows.steps, rows.collections, rows.requests
    for number in range(len(steps["start"])):
        stamps = [int(steps[name][number]) for name in ("start", *PHASES, "delivered")]
        found["steps", "step", stamps[0], stamps[-1]] += 1
        for phase, (start, end) in zip(PHASES, pairwise(stamps[:-1]), strict=True):
            found["steps", phase, start, end] += start < end
        end, blocked = int(steps["wait"][number]), int(steps["device_ns"][number])
        start = max(end - blocked, int(steps["launch"][number]))
        found["blocked on the device", "blocked", start, end] += start < end
    for process, generation, start, length in zip(
        *(events[name].tolist() for name in ("process", "generation", "start_ns", "duration_ns")),
        strict=True,
    ):
        track = f"collections in {titles[process]}"
        found[track, f"generation {generation}", start, start + length] += 1
    moments = (requests[f"{name}_ns"].tolist() for name in ("queued", "first", "last"))
    for number, (queued, first, last) in enumerate(zip(*moments, strict=True)):
        if first:
            found["requests", f"request {number}", queued, last] += 1
            found["requests", "to the first token", queued, first] += 1
            found["requests", "further tokens", first, last] += first < last
    return +found


def compare_with(rows, titles, slices):
    """A trace has each step, phase, wait, collection and request of the rows, and no more."""
    found = Counter(
        (each.track[0].split(" (")[0], each.name, each.start_ns, each.end_ns) for each in slices
    )
    assert found == expected(rows, titles)

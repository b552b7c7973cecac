"""A trace for https://ui.perfetto.dev, of tracks and slices by one clock."""

from typing import Any, NamedTuple

from perfetto.trace_builder.proto_builder import TraceProtoBuilder  # type: ignore[import-untyped]

_MONOTONIC = 3  # BuiltinClock of Perfetto: what `time.perf_counter_ns` reads on Linux
_ONE_WRITER = 1


class Slice(NamedTuple):
    """Something that lasted, in nanoseconds of CLOCK_MONOTONIC."""

    name: str
    start_ns: int
    end_ns: int


class PerfettoTrace:
    """Made of packets. ``began_ns``: the first moment, in nanoseconds of CLOCK_MONOTONIC."""

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

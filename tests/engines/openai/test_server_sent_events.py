"""Events come out the same wherever the bytes were cut."""

import re
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engines.openai.server_sent_events import Event, EventDecoder

LINE_END = re.compile(b"\r\n|\n|\r")


def naive(stream: bytes) -> list[Event]:
    """By the standard's own steps, the whole stream in hand: line by line, a blank line ends."""
    lines = LINE_END.split(stream.removeprefix(b"\xef\xbb\xbf"))
    events, data, type_ = [], [], b""
    for line in lines[:-1]:
        name, colon, value = line.partition(b":")
        if not line:
            if data:
                events.append(Event(b"\n".join(data), type_))
            data, type_ = [], b""
        elif name == b"data":
            data.append(value.removeprefix(b" ") if colon else b"")
        elif name == b"event":
            type_ = value.removeprefix(b" ") if colon else b""
    return events


def decoded(pieces: list[bytes]) -> list[Event]:
    decoder = EventDecoder()
    return [event for piece in pieces for event in decoder.feed(piece)]


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    borders = [0, *sorted(place % (len(stream) + 1) for place in places), len(stream)]
    return [stream[a:b] for a, b in pairwise(borders)]


PARTS = st.sampled_from(
    [
        b"data: ",
        b"data:",
        b"data",
        b"event: x",
        b"event:",
        b"event",
        b"id: 1",
        b": comment",
        b"retry: 5",
        b"\n",
        b"\r\n",
        b"\r",
        b"\n\n",
        b"\r\n\r\n",
        b" ",
        b"{}",
        b"[DONE]",
        b"\xff",
        "ü日".encode(),
        b"\x00",
        b"\xef",
        b"\xef\xbb\xbf",
        b"datax: y",
    ]
)


@example(stream=b"data: a\r\n\r\ndata: b\r\n\r\n", places=[8, 9, 10])
@example(stream=b"data: a\n\r\n\rdata: b\n\n", places=[9])
@example(stream=b"\xef\xbb\xbfdata: a\n\n", places=[1, 2])
@example(stream=b"\r\n\ndata: a\r\r\n", places=[1, 2])
@given(stream=st.lists(PARTS, max_size=20).map(b"".join), places=st.lists(st.integers(0, 400)))
def test_any_cut_gives_the_events_of_the_whole(stream, places):
    assert decoded(cut(stream, places)) == naive_or_pending(stream)


def naive_or_pending(stream: bytes) -> list[Event]:
    """A final CR may be half of a CRLF: it ends its line all the same."""
    return naive(stream + b"\n") if stream.endswith(b"\r") else naive(stream)


def test_an_event_that_has_not_ended_is_there_at_the_end_of_the_stream():
    decoder = EventDecoder()
    assert decoder.feed(b"data: whole\n\ndata: half\n") == [Event(b"whole")]
    assert decoder.end() == [Event(b"half")]
    assert decoder.end() == []


@pytest.mark.parametrize(
    ("body", "events"), [(b'{"a": 1}\n', [Event(b'{"a": 1}')]), (b": ping\n", []), (b"no\n", [])]
)
def test_a_body_without_events_is_one_where_it_is_an_object(body, events):
    decoder = EventDecoder()
    assert decoder.feed(body) == []
    assert decoder.end() == events

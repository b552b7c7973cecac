"""Streams of many servers, each beside its truth; however the bytes are cut, the truth is read.

``streams/NAME.txt`` is what a server says, ``NAME.toml`` what that means: ``delivered`` and
``answer`` are numbers of its blocks, which blank lines end, counted from 1; ``kinds`` has each
event's. They were written for this test after what servers document and answer.
"""

import re
import tomllib
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.openai.outcome import Outcome
from engines.openai.response import read_response
from engines.openai.stream_event import Kind

STREAMS = Path(__file__).with_name("streams")
TRUTHS = {path.stem: tomllib.loads(path.read_text()) for path in sorted(STREAMS.glob("*.toml"))}
BLOCK = re.compile(rb".*?(?:\r?\n){2}|.+\Z", re.DOTALL)


def blocks(name: str) -> list[bytes]:
    """As the server sends them, HTTP's own bytes in the first and the last."""
    truth = TRUTHS[name]
    text = (STREAMS / f"{name}.txt").read_text()
    said = BLOCK.findall(text.replace("\n", truth.get("line_end", "\n")).encode())
    head = f"HTTP/1.1 {truth.get('status', 200)} X\r\nContent-Type: text/event-stream\r\n".encode()
    if truth.get("framing") == "close":
        return [head + b"\r\n" + said[0], *said[1:]]
    chunks = [b"%x\r\n%s\r\n" % (len(each), each) for each in said]
    chunks[0] = head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks[0]
    chunks[-1] += b"0\r\n\r\n"
    return chunks


def read(name, pieces):
    truth = TRUTHS[name]
    is_close = truth.get("framing") == "close"
    ended = Outcome.CLOSED_EARLY if is_close else Outcome.COMPLETED
    return read_response(pieces, ended, truth["asked"])


def meaning(response):
    """All but the moments."""
    return (
        response.outcome.name.lower(),
        response.num_tokens,
        response.counted_by.name.lower(),
        response.prompt_tokens,
        response.text,
        Counter({kind.name.lower(): response.kinds[kind] for kind in Kind if response.kinds[kind]}),
    )


def true_meaning(truth):
    names = ("outcome", "tokens", "counted_by", "prompt_tokens", "text")
    return (*(truth[name] for name in names), Counter(truth["kinds"]))


@pytest.mark.parametrize("name", TRUTHS)
def test_a_stream_is_read_as_its_server_means_it(name):
    truth = TRUTHS[name]
    response = read(name, enumerate(blocks(name), 1))
    assert meaning(response) == true_meaning(truth)
    assert list(response.delivered_ns) == truth["delivered"]
    first = next(iter(truth["delivered"]), 0)
    assert response.first_answer_ns == truth.get("answer", first if truth["text"] else 0)


def byte_moments(name):
    """The number of the byte with which each token was there."""
    stream = b"".join(blocks(name))
    return read(name, ((i + 1, stream[i : i + 1]) for i in range(len(stream)))).delivered_ns


@pytest.mark.parametrize("name", TRUTHS)
@given(places=st.lists(st.integers(0, 10**6)))
def test_any_cut_of_the_bytes_says_the_same(name, places):
    stream = b"".join(blocks(name))
    borders = [0, *sorted({1 + place % len(stream) for place in places} | {len(stream)})]
    pieces = [(end, stream[begin:end]) for begin, end in pairwise(borders)]
    response = read(name, pieces)
    assert meaning(response) == true_meaning(TRUTHS[name])
    # A token is there with the piece that brings its last byte.
    assert list(response.delivered_ns) == [
        next(border for border in borders if border >= moment) for moment in byte_moments(name)
    ]


def test_every_kind_of_event_is_among_them():
    assert {kind for truth in TRUTHS.values() for kind in truth["kinds"]} == {
        kind.name.lower() for kind in Kind
    }


def test_no_file_is_without_its_truth():
    assert {path.stem for path in STREAMS.glob("*.txt")} == set(TRUTHS)

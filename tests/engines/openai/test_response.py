"""What a request was answered, read from its pieces; any cut of these says the same."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.openai.outcome import WHOLE, Outcome
from engines.openai.response import UNKNOWN_COUNT, read_response
from engines.protocol import FinishReason

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
DONE = "data: [DONE]\n\n"


def event(value):
    return f"data: {json.dumps(value, ensure_ascii=False)}\n\n"


def text(said, reason=None, **more):
    return event({"choices": [{"index": 0, "text": said, "finish_reason": reason} | more]})


def chat(delta, reason=None):
    return event({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})


def usage(tokens):
    return event({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": tokens}})


def chunked(*events, end=b"0\r\n\r\n"):
    bodies = [each.encode() if isinstance(each, str) else each for each in events]
    return HEAD + b"".join(b"%x\r\n%s\r\n" % (len(each), each) for each in bodies) + end


def read(stream, asked=3, ended=Outcome.COMPLETED):
    return read_response([(7, stream)], ended, asked)


WHOLE_STREAM = chunked(text(" ä"), text("b"), text("日", "length"), usage(3), DONE)


@given(st.lists(st.integers(1, len(WHOLE_STREAM) - 1), unique=True))
def test_any_cut_reads_the_same_and_keeps_the_moments(places):
    borders = [0, *sorted(places), len(WHOLE_STREAM)]
    pieces = [(1000 + b, WHOLE_STREAM[a:b]) for a, b in pairwise(borders)]
    response = read_response(pieces, Outcome.COMPLETED, 3)
    assert response.outcome is Outcome.COMPLETED
    assert (response.text, response.num_tokens, response.prompt_tokens) == (" äb日", 3, 5)
    assert response.finish_reason == FinishReason.LENGTH
    # An event is there with the piece that ends it.
    ends = [
        WHOLE_STREAM.index(b"\n\n", WHOLE_STREAM.index(mark.encode())) + 2
        for mark in (" ä", '"b"', "日")
    ]
    assert list(response.delivered_ns) == [
        1000 + next(border for border in borders if border >= end) for end in ends
    ]


@pytest.mark.parametrize(
    ("events", "deliveries", "tokens"),
    [
        ([text("a"), text("b"), text("c", "length"), usage(3), DONE], 3, 3),
        # The words of several tokens in one event, as with speculative decoding.
        ([text("a"), text("bc", "length"), usage(3), DONE], 2, 3),
        # A token whose text is not complete yet.
        ([text("a"), text(""), text("c", "length"), usage(3), DONE], 3, 3),
        # The last token has no text: vLLM's end-of-sequence.
        ([text("a"), text("b"), text("", "stop"), usage(3), DONE], 3, 3),
        # The last event has no token: llama.cpp's, TGI's.
        ([text("a"), text("b"), text("c"), text("", "stop"), usage(3), DONE], 3, 3),
        # No usage at all: nobody knows.
        ([text("a"), text("b", "stop"), DONE], 2, UNKNOWN_COUNT),
        # Nor [DONE].
        ([text("a"), text("b", "stop")], 2, UNKNOWN_COUNT),
        ([text("a", token_ids=[4, 5]), text("b", "stop", token_ids=[6]), usage(3), DONE], 2, 3),
        # A chat begins with its role, which is no token.
        (
            [
                chat({"role": "assistant", "content": ""}),
                chat({"content": "a"}),
                chat({"content": "b"}, "stop"),
                usage(2),
                DONE,
            ],
            2,
            2,
        ),
        ([chat({"reasoning_content": "hm"}), chat({"content": "b"}, "stop"), usage(2), DONE], 2, 2),
        ([": ping\n\n", text("a"), "event: x\nid: 3\n\n", text("b", "stop"), usage(2), DONE], 2, 2),
    ],
)
def test_what_servers_send_is_counted_as_they_mean_it(events, deliveries, tokens):
    response = read(chunked(*events))
    assert response.outcome is Outcome.COMPLETED, response.message
    assert (len(response.delivered_ns), response.num_tokens) == (deliveries, tokens)


TWO = (text("a"), text("b"))
WHOLE_ANSWER = (text("a"), text("b"), text("c", "stop"), usage(3))


@pytest.mark.parametrize(
    ("stream", "ended", "outcome"),
    [
        (chunked(*TWO, end=b""), Outcome.CLOSED_EARLY, Outcome.CLOSED_EARLY),
        (chunked(*TWO), Outcome.COMPLETED, Outcome.CLOSED_EARLY),
        (chunked(*TWO, end=b""), Outcome.TIMED_OUT, Outcome.TIMED_OUT),
        (b"", Outcome.RESET, Outcome.RESET),
        (b"", Outcome.REFUSED, Outcome.REFUSED),
        (chunked(*TWO, end=b""), Outcome.RESET, Outcome.RESET),
        (chunked(text("a"), "data: {\n\n", DONE), Outcome.COMPLETED, Outcome.MALFORMED),
        (
            chunked(text("a"), b'data: {"choices": [{"text": "\xff"}]}\n\n'),
            Outcome.COMPLETED,
            Outcome.MALFORMED,
        ),
        *(
            (chunked(text("a"), f"data: {nested * 100_000}\n\n"), Outcome.COMPLETED, outcome)
            for nested, outcome in (
                ('{"choices":[', Outcome.MALFORMED),
                ("[", Outcome.CLOSED_EARLY),
            )
        ),
        (chunked(text("a"), 'data: {"choices": 3}\n\n'), Outcome.COMPLETED, Outcome.CLOSED_EARLY),
        (chunked("no event at all"), Outcome.COMPLETED, Outcome.MALFORMED),
        (b"SSH-2.0\r\n", Outcome.MALFORMED, Outcome.MALFORMED),
        (
            chunked(text("a"), event({"error": {"code": 500}})),
            Outcome.COMPLETED,
            Outcome.SERVER_ERROR,
        ),
        (
            chunked(*WHOLE_ANSWER, event({"error": "oh"}), DONE),
            Outcome.COMPLETED,
            Outcome.SERVER_ERROR,
        ),
        (
            chunked(*WHOLE_ANSWER, event({"object": "error", "code": 4}), DONE),
            Outcome.COMPLETED,
            Outcome.SERVER_ERROR,
        ),
        (
            chunked(*WHOLE_ANSWER, event({"type": "error", "message": "x"}), DONE),
            Outcome.COMPLETED,
            Outcome.SERVER_ERROR,
        ),
        (
            chunked(*WHOLE_ANSWER, "event: error\ndata: no JSON\n\n", DONE),
            Outcome.COMPLETED,
            Outcome.SERVER_ERROR,
        ),
        (
            chunked(text("a"), text("b", "error"), usage(2), DONE),
            Outcome.COMPLETED,
            Outcome.SERVER_ERROR,
        ),
        *(
            (
                chunked(text("a"), text("b", reason), usage(2), DONE),
                Outcome.COMPLETED,
                Outcome.CUT_OFF,
            )
            for reason in ("abort", "content_filter", "cancelled")
        ),
        *(
            (
                chunked(text("a"), text("b", reason), usage(2), DONE),
                Outcome.COMPLETED,
                Outcome.CLOSED_EARLY,
            )
            for reason in (None, "")
        ),
        (chunked(usage(0), DONE), Outcome.COMPLETED, Outcome.CLOSED_EARLY),
        (chunked(text("", "stop"), usage(0), DONE), Outcome.COMPLETED, Outcome.EMPTY),
        (chunked(text("", "stop"), DONE), Outcome.COMPLETED, Outcome.EMPTY),
        (b"HTTP/1.1 429 X\r\nContent-Length: 2\r\n\r\nno", Outcome.COMPLETED, Outcome.RATE_LIMITED),
        (b"HTTP/1.1 404 X\r\nContent-Length: 2\r\n\r\nno", Outcome.COMPLETED, Outcome.CLIENT_ERROR),
        (b"HTTP/1.1 503 X\r\nContent-Length: 2\r\n\r\nno", Outcome.COMPLETED, Outcome.SERVER_ERROR),
        (b"HTTP/1.1 302 X\r\nContent-Length: 0\r\n\r\n", Outcome.COMPLETED, Outcome.OTHER_STATUS),
        # A status says more than how the connection ended behind it.
        (
            b"HTTP/1.1 500 X\r\nContent-Length: 9\r\n\r\nno",
            Outcome.CLOSED_EARLY,
            Outcome.SERVER_ERROR,
        ),
        (b"HTTP/1.1 500 X\r\nContent-Length: 9\r\n\r\nno", Outcome.TIMED_OUT, Outcome.TIMED_OUT),
    ],
)
def test_each_failure_has_its_kind(stream, ended, outcome):
    response = read(stream, ended=ended)
    assert response.outcome is outcome
    assert response.finish_reason == -1


def test_a_stream_without_a_length_ends_with_its_connection():
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    body = "".join([text("a"), text("b", "stop"), usage(2), DONE]).encode()
    assert read(head + body, ended=Outcome.CLOSED_EARLY).outcome is Outcome.COMPLETED
    assert read(head + body[:-20], ended=Outcome.CLOSED_EARLY).outcome is Outcome.CLOSED_EARLY


def test_a_failure_quotes_the_server():
    response = read(b"HTTP/1.1 400 X\r\nContent-Length: 11\r\n\r\nbad prompt\n")
    assert response.message == "status 400: bad prompt\n"


@given(st.binary(max_size=300), st.sampled_from(list(Outcome)))
def test_no_bytes_at_all_break_the_reader(junk, ended):
    for stream in (junk, HEAD + junk, chunked(b"data: " + junk + b"\n\n")):
        assert isinstance(read(stream, ended=ended).outcome, Outcome)


@given(
    st.lists(st.sampled_from([None, "", "stop", "Length", "abort", "?"]), max_size=4),
    st.sampled_from(list(Outcome)),
)
def test_what_is_completed_has_a_finish_reason_and_nothing_else_has_one(reasons, ended):
    response = read(chunked(*(text("a", each) for each in reasons), DONE), ended=ended)
    assert (response.outcome in WHOLE) == (response.finish_reason >= 0)

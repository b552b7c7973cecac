"""The client against a scripted server: connections kept, failures by kind, bytes as they came."""

import asyncio
import socket
from pathlib import Path

import numpy as np
import pytest
import uvloop
from runs import load
from scripted_server import ScriptedServer

from engines.openai.client import Client
from engines.openai.outcome import Outcome
from engines.openai.request_body import Question, request_bytes
from engines.openai.responses import read_responses
from engines.openai.target import parse_target
from engines.protocol import SamplingParams

CERTIFICATE = Path(__file__).parent / "loopback.pem"


def ask(target, count, *, together=True, tokens=3, act=None, timeout_ns=0, room=10_000):
    """Send so many requests, at once or one by one; the recording when all have ended."""
    content = request_bytes(
        target, Question("m"), np.array([1, 2], np.int32), SamplingParams(max_tokens=tokens)
    )
    asked = np.full(count, tokens, np.int32)
    loop = uvloop.new_event_loop()
    client = Client(loop, [target], [content] * count, asked, room, timeout_ns)
    over = loop.create_future()
    ended = []

    def on_end(request):
        ended.append(request)
        if len(ended) == count:
            over.set_result(None)
        elif not together:
            client.add_request(len(ended))

    async def run():
        client.on_end = on_end
        for request in range(count if together else 1):
            client.add_request(request)
        if act is not None:
            await act(client)
        await over
        client.close()
        await asyncio.sleep(0)

    loop.run_until_complete(run())
    loop.close()
    assert sorted(ended) == list(range(count))
    assert client.num_in_flight == 0
    return client.recording(count)


def outcomes(recording):
    return [Outcome(each) for each in read_responses(recording).outcome]


def test_a_connection_is_used_again():
    with ScriptedServer() as server:
        target = parse_target(server.url)
        recording = ask(target, 20, together=False)
        assert outcomes(recording) == [Outcome.COMPLETED] * 20
        assert (np.diff(recording.sent_ns) > 0).all()
        assert (recording.sent_ns <= recording.written_ns).all()
        assert (recording.written_ns < recording.ended_ns).all()


def test_room_that_is_too_small_grows_and_loses_nothing():
    with ScriptedServer() as server:
        recording = ask(parse_target(server.url), 30, tokens=20, room=1)
    responses = read_responses(recording)
    assert outcomes(recording) == [Outcome.COMPLETED] * 30
    assert (responses.num_deliveries == 20).all()
    assert sorted(responses.token_ids.tolist()) == sorted(
        100 * request + token for request in range(30) for token in range(20)
    )


def test_nobody_who_listens_is_a_refusal():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        target = parse_target(f"http://127.0.0.1:{taken.getsockname()[1]}")
        assert outcomes(ask(target, 3)) == [Outcome.REFUSED] * 3


@pytest.mark.slow
def test_what_takes_too_long_is_broken_off():
    async def look(client):
        """Nobody is broken off before the others have answered, however long that takes them."""
        while client.num_in_flight:
            await asyncio.sleep(0.01)
            if client.num_in_flight <= 4:
                client.abort_late()

    with ScriptedServer(faults=["none", "silent", "endless"]) as server:
        recording = ask(parse_target(server.url), 6, act=look, timeout_ns=500_000_000)
    assert sorted(outcomes(recording)) == [Outcome.COMPLETED] * 2 + [Outcome.TIMED_OUT] * 4
    late = recording.ended == Outcome.TIMED_OUT
    assert ((recording.ended_ns - recording.sent_ns)[late] >= 500_000_000).all()


def test_a_request_can_be_broken_off_before_it_has_a_connection():
    async def abort(client):
        client.abort_request(1)
        client.abort_request(1)

    with ScriptedServer() as server:
        recording = ask(parse_target(server.url), 3, act=abort)
    assert outcomes(recording) == [Outcome.COMPLETED, Outcome.INTERRUPTED, Outcome.COMPLETED]


def test_a_certificate_nobody_has_signed_is_a_tls_error():
    with ScriptedServer(certificate=str(CERTIFICATE)) as server:
        assert outcomes(ask(parse_target(server.url), 2)) == [Outcome.TLS_ERROR] * 2
        trusted = parse_target(server.url, str(CERTIFICATE))
        assert outcomes(ask(trusted, 2)) == [Outcome.COMPLETED] * 2


@pytest.mark.parametrize("trust", [["--ca-file", str(CERTIFICATE)], ["--insecure"]])
def test_a_run_over_tls(tmp_path, trust):
    with ScriptedServer(certificate=str(CERTIFICATE)) as server:
        ran = load(server.url, tmp_path, *trust, num_requests=5, output_lens=2)
    assert ran.result.outcomes == {"completed": 5}

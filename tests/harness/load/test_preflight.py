"""The request before a run: what it finds, when it ends the run, and which flags it names."""

import pytest
from runs import load
from scripted_server import ScriptedServer

from engines.openai.outcome import Outcome
from engines.openai.response import Response
from harness.cli.main import main
from harness.load.refusals import flag_for, is_final

SMALL = ("--num-requests", "3", "--output-lens", "3")


def said(capsys, url, folder, *flags):
    status = main(["load", url, *SMALL, *flags, "--output", str(folder)])
    lines = capsys.readouterr().err.splitlines()
    return status, [line for line in lines if "preflight" in line or line.startswith("gcbench:")]


@pytest.mark.slow
@pytest.mark.landing
def test_it_says_what_it_has_found_in_three_lines(tmp_path, capsys):
    with ScriptedServer() as server:
        _, lines = said(capsys, server.url, tmp_path)
    assert lines == [
        "preflight: 3 events brought text or token ids; the server sends token ids, which are "
        "counted",
        "preflight: 3 of 3 tokens came, finish reason length",
        "preflight: the server does not say how long its context is; the longest request has 51 "
        "tokens",
    ]


@pytest.mark.slow
def test_it_asks_as_the_run_does_with_the_largest_token_id(tmp_path):
    with ScriptedServer() as server:
        load(server.url, tmp_path, *SMALL, vocab_size=1000)
        bodies = server.seen()["bodies"]
    assert len(bodies) == 1 + 1 + 3  # one looks ahead, one warms up
    assert bodies[0]["prompt"][-1] == 999
    assert all(max(body["prompt"]) < 1000 for body in bodies)
    assert len({tuple(body) for body in bodies}) == 1  # of the same fields


@pytest.mark.slow
def test_no_warm_up_means_that_nothing_is_asked_but_the_schedule(tmp_path):
    with ScriptedServer() as server:
        load(server.url, tmp_path, *SMALL, num_warmups=0)
        assert len(server.seen()["bodies"]) == 3


@pytest.mark.slow
def test_a_refusal_of_the_question_ends_the_run_before_it_begins(tmp_path, capsys):
    with ScriptedServer(faults=["not_found"]) as server:
        status, lines = said(capsys, server.url, tmp_path)
        assert len(server.seen()["bodies"]) == 1
    assert status == 3
    assert len(lines) == 1
    assert "status 404: no such model; --prompt-as chat" in lines[0]


@pytest.mark.slow
def test_a_failure_that_may_pass_is_said_and_the_run_goes_on(tmp_path, capsys):
    with ScriptedServer(faults=["rate_limited", *["none"] * 10]) as server:
        _, lines = said(capsys, server.url, tmp_path)
        assert len(server.seen()["bodies"]) == 5
    assert lines[0].startswith("preflight: rate limited: status 429: slow down; --max-concurrency")


@pytest.mark.slow
def test_a_key_that_the_server_repeats_is_not_shown(tmp_path, capsys):
    with ScriptedServer(faults=["echoes_key"]) as server:
        status, (line,) = said(capsys, server.url, tmp_path, "--api-key", "sesame")
    assert status == 3
    assert "sesame" not in line
    assert "[API key]; --api-key KEY" in line


@pytest.mark.parametrize(
    ("message", "flag"),
    [
        ("token id 50256 is out of vocabulary, which has 32000 ids", "--vocab-size"),
        ("Token ids in the prompt are out of range", "--vocab-size"),
        ("This model's maximum context length is 2048 tokens", "--prompt-lens"),
        ("'max_tokens' is not supported; use 'max_completion_tokens'", "--extra-body"),
        ("Unknown argument: stream_options", "--extra-body"),
        ("body.ignore_eos: Extra inputs are not permitted", "--standard-fields"),
        ("property 'return_token_ids' is unsupported", "--standard-fields"),
        ("messages: field required", "--prompt-as chat"),
        (
            '{"loc": ["body", "prompt"], "msg": "Input should be a valid string"}',
            "--prompt-as text",
        ),
        ("Incorrect API key provided", "--api-key"),
        ("The model `m` does not exist.", "--model"),
        ("status 404: no such page", "--prompt-as chat"),
        ("status 400: no", ""),
    ],
)
def test_what_a_server_says_leads_to_the_flag_that_helps(message, flag):
    assert flag_for(message).startswith(flag)
    assert bool(flag_for(message)) == bool(flag)


@pytest.mark.parametrize(
    ("outcome", "message", "final"),
    [
        (Outcome.CLIENT_ERROR, "status 400: no", True),
        (Outcome.CLIENT_ERROR, "status 408: slow", False),
        (Outcome.SERVER_ERROR, 'an error in the stream: {"error": {"code": 400}}', True),
        (Outcome.SERVER_ERROR, 'an error in the stream: {"error": {"code": "429"}}', False),
        (Outcome.SERVER_ERROR, 'an error in the stream: {"error": {"code": 502}}', False),
        (Outcome.SERVER_ERROR, "status 500: boom", False),
        (Outcome.RATE_LIMITED, "status 429: slow down", False),
        (Outcome.TIMED_OUT, "", False),
    ],
)
def test_only_what_no_second_attempt_would_change_is_final(outcome, message, final):
    assert is_final(Response(outcome, message=message)) == final

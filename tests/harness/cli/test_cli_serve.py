"""``gcbench serve`` before it serves: what it does not take, each in one sentence."""

import socket

import pytest

from harness.cli.main import main
from harness.verbs.request import made
from harness.verbs.serve import ServeRequest, served_engine


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--host", "0.0.0.0"], "--host 0.0.0.0: others can reach this address, so an API key"),
        (["--host", "::"], "--host ::: others can reach this address"),
        (["--host", "192.0.2.1"], "--host 192.0.2.1: others can reach"),
        (["--host", "example.invalid"], "--host example.invalid: others can reach"),
        (["--host", "192.0.2.1", "--api-key", "k"], "--host 192.0.2.1 --port 8000: "),
        (["--host", "a b", "--api-key", "k"], "--host a b: "),
        (["--host", "é" * 70, "--api-key", "k"], "give an address of this machine"),
        (["--batch-size", "4,8"], "--batch-size 4,8: give one value"),
        (["--delivery", "columnar"], "columnar delivery of list_of_lists: it has no columns"),
        (
            ["--delivery", "columnar", "--representation", "flat_arrays"],
            "columnar delivery with --axis detokenizer=decode_stream: it keeps objects for each",
        ),
        (["--gc", "on_wait"], "--gc on_wait: the front end waits for no device"),
        (["--gc", "frezze"], "did you mean freeze"),
        (["--axis", "model=opt-126m"], "unknown model 'opt-126m'"),
        (["--device", "cdua"], "did you mean cuda"),
        (["--axis", "max-model-len=1"], "--axis max-model-len=1: "),
        (["--axis", "num-gpu-blocks-override=2"], "KV cache of 2 blocks"),
        (["--axis", "tokens-per-step=0"], "0 tokens a step"),
        (["--axis", "tokenizer=/nowhere"], "--axis tokenizer=/nowhere: No such file"),
        (["--wire", "columns"], "--wire columns: nothing crosses with --worker in-process"),
        (["--ready-file", "/nowhere/x"], "--ready-file /nowhere/x: cannot be written"),
        (["--axis", "max-queued=-1"], "max-queued"),
        (["--axis", "request-timeout=0"], "request-timeout"),
        (["--workload", "chat"], "--workload"),
    ],
)
def test_what_cannot_be_served_is_said_in_a_sentence(flags, says, capsys, monkeypatch):
    monkeypatch.delenv("GCBENCH_API_KEY", raising=False)
    assert main(["serve", *flags]) == 2
    said = capsys.readouterr()
    assert says in said.err
    assert (said.out, said.err.count("\n")) == ("", 1)


def test_a_port_that_is_taken_is_named(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main(["serve", "--device", "null", "--port", port]) == 2
    assert f"--host 127.0.0.1 --port {port}: Address already in use" in capsys.readouterr().err


def test_the_context_is_the_models_unless_it_is_given():
    assert served_engine(ServeRequest())[1].max_model_len == 2048
    assert served_engine(made(ServeRequest, {"max_model_len": 77}))[1].max_model_len == 77


def test_the_seed_decides_as_in_a_trial():
    tables = {
        served_engine(ServeRequest(tokens_per_step="1..4", seed=seed))[1].num_accepted
        for seed in (0, 0, 1)
    }
    seeds = {served_engine(ServeRequest(seed=seed))[1].seed for seed in (0, 0, 1)}
    assert (len(tables), len(seeds)) == (2, 2)

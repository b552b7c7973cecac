"""What the flags of ``gcbench load`` make of the requests that go out, and of the run's end."""

import json

import pytest
from processes import HANG_SECONDS
from runs import load
from scripted_server import ScriptedServer

from harness.cli.main import main
from harness.files import read_rows
from harness.load.distribution import percentiles_of
from harness.report.kinds import describe_result


@pytest.mark.slow
@pytest.mark.landing
def test_goodput_is_what_the_stored_rows_come_to(tmp_path):
    exported = tmp_path / "vllm.json"
    with ScriptedServer(gaps=[0.01, 0.03, 0.05], faults=["none"] * 4 + ["reset"]) as server:
        ran = load(
            server.url,
            tmp_path,
            num_requests=60,
            output_lens=4,
            goodput="ttft:40,e2el:135",
            max_concurrency=6,
            num_warmups=0,
            max_error_rate=0.5,
            export_vllm=exported,
        )
    rows = read_rows(next(ran.folder.glob("rows/*-requests.parquet")))
    done = rows["finish_reason"] >= 0
    ttft = (rows["first_ns"] - rows["sent_ns"]) / 1e6
    last = (rows["last_ns"] - rows["sent_ns"]) / 1e6
    good = int((done & (ttft <= 40) & (last <= 135)).sum())
    seconds = (rows["last_ns"][done].max() - rows["sent_ns"][done].min()) / 1e9
    found = ran.result.goodput
    assert found.good == good
    assert found.share == pytest.approx(good / 60)
    assert found.per_second == pytest.approx(good / seconds)
    assert json.loads(exported.read_bytes())["request_goodput"] == pytest.approx(good / seconds)
    seconds = (rows["first_ns"] - rows["sent_ns"])[done].astype(float) / 1e9
    assert ran.result.percentiles["ttft"] == percentiles_of(seconds, 50.0)
    pictures = describe_result(ran.result, ran.folder).pictures
    assert [each.title for each in pictures] == ["Distribution", "Timeline"]
    assert all(each.draw(".png").startswith(b"\x89PNG") for each in pictures)


@pytest.mark.slow
def test_nothing_is_sent_after_the_duration_and_what_is_under_way_ends(tmp_path):
    with ScriptedServer(gaps=[0.05]) as server:
        ran = load(
            server.url,
            tmp_path,
            "--axis",
            "arrivals=constant:20",
            num_requests=400,
            output_lens=6,
            duration=1,
            num_warmups=0,
        )
    assert ran.result.outcomes["unsent"] + ran.result.num_completed == 400
    assert ran.result.num_attempted == ran.result.num_completed
    rows = read_rows(next(ran.folder.glob("rows/*-requests.parquet")))
    sent = rows["sent_ns"][rows["sent_ns"] > 0]
    assert 1 < len(sent) <= 20
    assert sent.max() - rows["scheduled_ns"][0] <= 1e9 * HANG_SECONDS


@pytest.mark.slow
def test_own_prompts_headers_and_lengths_go_out_and_only_a_headers_name_is_kept(tmp_path):
    prompts = tmp_path / "p.jsonl"
    prompts.write_text('{"prompt": "one"}\n{"prompt": "two"}\n')
    body = '{"max_tokens": null, "max_completion_tokens": "$max_tokens"}'
    exported = tmp_path / "vllm.json"
    with ScriptedServer() as server:
        ran = load(
            f"{server.url}/v1/chat/completions?api-version=3",
            tmp_path,
            "--standard-fields",
            num_requests=4,
            output_lens=3,
            num_warmups=0,
            prompts=prompts,
            prompt_as="chat",
            extra_body=body,
            header="X-Team: blue-7",
            request_rate=50,
            burstiness=0.5,
            export_vllm=exported,
        )
        bodies = server.seen()["bodies"]
    assert ran.result.num_completed == 4
    assert [each["messages"][0]["content"] for each in bodies] == ["one", "two"] * 2
    assert {each["max_completion_tokens"] for each in bodies} == {3}
    assert not any("max_tokens" in each for each in bodies)
    assert ran.result.asked.headers == ["X-Team"]
    kept = [path.read_bytes() for path in ran.folder.rglob("*.json")]
    assert not any(b"blue-7" in each for each in kept)
    document = json.loads(exported.read_bytes())
    assert (document["request_rate"], document["burstiness"]) == (50, 0.5)


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--sweep", "speed"], "give rate, concurrency"),
        (["--sweep", "rate:0"], "give rate, concurrency"),
        (["--sweep", "rate", "--request-rate", "3"], "--sweep: says itself"),
        (["--sweep", "rate", "--log", "x.npz"], "--sweep: makes many loads"),
        (["--goodput", "itl:5"], "NAME:MILLISECONDS"),
        (["--header", "X Y: 1"], "NAME: VALUE"),
        (["--header", "X-Y"], "NAME: VALUE"),
        (["--prompts", "/absent.jsonl"], "--prompts /absent.jsonl"),
        (["--extra-body", "[]"], "give a JSON object"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_a_sentence(flags, says, capsys):
    assert main(["load", "http://127.0.0.1:9", *flags]) == 2
    said = capsys.readouterr().err
    assert says in said
    assert len(said.splitlines()) == 1

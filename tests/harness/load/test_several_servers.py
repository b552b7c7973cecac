"""Several servers in turns, turns of conversations with the answers that came, embeddings."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from runs import load
from scripted_server import ScriptedServer

from engines.openai.request_body import words_of
from harness.cli.main import main
from harness.load.log import load_log

TURNS = """
num_requests = 12
prompt_lens = { kind = "uniform", low = 2, high = 6 }
output_lens = { kind = "uniform", low = 2, high = 5 }
arrivals = { kind = "at_once" }
turns = { count = 3 }
"""


@pytest.fixture
def conversations(tmp_path):
    path = tmp_path / "talk.toml"
    path.write_text(TURNS)
    return str(path)


def chains(schedule):
    """Each conversation's requests, in their order."""
    found = {}
    for request, previous in enumerate(schedule.previous_turn.tolist()):
        found[request] = [*found.pop(previous, []), request]
    return list(found.values())


def answers(folder: Path):
    """What was answered to each request, as the log has it: ids and text."""
    observed, _, _ = load_log(folder)
    said = observed.responses
    ids = np.split(said.token_ids, np.cumsum(said.num_ids)[:-1])
    texts = np.split(said.text, np.cumsum(said.num_text)[:-1])
    return observed, [each.tolist() for each in ids], [each.tobytes().decode() for each in texts]


def expected(form, schedule, ids, texts, stand_in=()):
    """The prompt of each request, conversation by conversation, straight from what came."""
    prompts = {}
    for chain in chains(schedule):
        spoken = []
        for turn, request in enumerate(chain):
            planned = schedule.prompt_token_ids(request).tolist()
            if turn:
                before = chain[turn - 1]
                start = int(schedule.prompt_lens[before])
                end = start + int(schedule.output_lens[before])
                answer = ids[before] if form == "ids" else texts[before]
                spoken.append(planned[start:end] if before in stand_in else answer)
                planned = planned[end:]
            spoken.append(planned)
            said = [each if isinstance(each, str) else words_of(np.array(each)) for each in spoken]
            roles = ["user", "assistant"] * len(said)
            prompts[request] = {
                "ids": [token for each in spoken for token in each],
                "text": " ".join(said),
                "chat": [
                    {"role": role, "content": text} for role, text in zip(roles, said, strict=False)
                ],
            }[form]
    return prompts


def asked(server, form):
    """The prompts that came, without what looks ahead and warms up."""
    field = "messages" if form == "chat" else "prompt"
    return [body[field] for body in server.seen()["bodies"]]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["ids", "text", "chat"])
def test_later_turns_ask_with_what_came(form, tmp_path, conversations):
    log = tmp_path / "run.npz"
    with ScriptedServer() as server:
        flags = ["--real-answers", "--prompt-as", form, "--workload", conversations]
        ran = load(server.url, tmp_path, *flags, log=log, num_warmups=0)
        came = asked(server, form)
    observed, ids, texts = answers(log)
    assert all(ids)
    assert all(texts)
    prompts = expected(form, observed.schedule, ids, texts)
    assert sorted(map(repr, came)) == sorted(map(repr, prompts.values()))
    assert any("server's own answers" in note for note in ran.result.notes)
    assert not any("stand-in" in note for note in ran.result.notes)
    assert ran.result.trial.engine_state["real_answers"]


@pytest.mark.slow
def test_an_answer_that_did_not_come_whole_is_stood_in_for(tmp_path, conversations):
    log = tmp_path / "run.npz"
    with ScriptedServer(faults=["none", "broken_off"]) as server:
        flags = ["--real-answers", "--workload", conversations, "--max-concurrency", "1"]
        ran = load(server.url, tmp_path, *flags, log=log, num_warmups=0)
        came = asked(server, "ids")
    observed, ids, texts = answers(log)
    broken = set(np.flatnonzero(~observed.responses.completed).tolist())
    assert len(broken) == 6
    prompts = expected("ids", observed.schedule, ids, texts, broken)
    assert sorted(came) == sorted(prompts.values())
    waiting = sum(previous in broken for previous in observed.schedule.previous_turn.tolist())
    (note,) = (note for note in ran.result.notes if "stand-in" in note)
    assert note.startswith(f"{waiting} of 8 later turns")


@pytest.mark.slow
def test_ids_that_the_server_does_not_send_cannot_be_asked_with(tmp_path, conversations, capsys):
    with ScriptedServer() as server:
        flags = ["--real-answers", "--workload", conversations, "--standard-fields"]
        assert main(["load", server.url, *flags, "--output", str(tmp_path)]) == 2
        assert len(server.seen()["bodies"]) == 1
    assert "sends no token ids to ask with; give --prompt-as chat" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (["--num-requests", "3"], "no request of this workload is a later turn"),
        (["--workload", "multi-turn", "--prompts", "P", "--prompt-as", "text"], "its own text"),
    ],
)
def test_real_answers_need_turns_and_planned_questions(flags, why, tmp_path, capsys):
    (tmp_path / "p.jsonl").write_text('"hello"\n')
    flags = [str(tmp_path / "p.jsonl") if each == "P" else each for each in flags]
    assert main(["load", "http://127.0.0.1:9", "--real-answers", *flags]) == 2
    assert why in capsys.readouterr().err


@pytest.mark.slow
def test_requests_take_turns_between_servers_and_conversations_stay(tmp_path, conversations):
    metrics = "# TYPE vllm:generation_tokens_total counter\nvllm:generation_tokens_total {n}\n"
    with ScriptedServer(metrics=metrics) as one, ScriptedServer(metrics=metrics) as other:
        log = tmp_path / "run.npz"
        flags = [other.url, "--workload", conversations, "--client-processes", "2"]
        ran = load(one.url, tmp_path, *flags, log=log, num_warmups=0)
        seen = [Counter(map(repr, asked(each, "ids"))) for each in (one, other)]
    schedule = load_log(log)[0].schedule
    wanted = [Counter(), Counter()]
    for chain in chains(schedule):
        for request in chain:
            prompt = repr(schedule.prompt_token_ids(request).tolist())
            wanted[chain[0] % 2][prompt] += 1
    assert seen == wanted
    parts = ran.result.by_server
    assert [each.url for each in parts] == [one.url, other.url]
    assert [each.num_completed for each in parts] == [each.total() for each in wanted]
    # Each server's own word, side by side: together they have had all requests.
    assert sum(ran.result.scrapes[-1].values.values()) == 12
    assert {name.partition("{")[2] for name in ran.result.scrapes[-1].values} == {
        f'server="{each.url.removeprefix("http://")}"}}' for each in (one, other)
    }


@pytest.mark.slow
def test_one_server_of_two_that_fails_is_named(tmp_path):
    with ScriptedServer() as one, ScriptedServer(faults=["server_error"]) as other:
        ran = load(one.url, tmp_path, other.url, num_requests=10, output_lens=3, num_warmups=0)
    assert ran.status == 3
    assert [(each.num_attempted, each.num_completed) for each in ran.result.by_server] == [
        (5, 5),
        (5, 0),
    ]


@pytest.mark.slow
def test_embeddings_are_answers_without_tokens(tmp_path):
    with ScriptedServer() as server:
        ran = load(f"{server.url}/v1/embeddings", tmp_path, num_requests=20, prompt_lens=9)
        bodies = server.seen()["bodies"]
    assert all(body.keys() == {"model", "input"} for body in bodies)
    assert ran.result.outcomes == {"completed": 20}
    assert ran.result.counted_by == {"no_tokens": 20}
    assert ran.result.prompt_tokens == 180
    metrics = ran.result.trial.metrics
    assert metrics["e2el_median"] == metrics["ttft_median"] > 0
    assert metrics["output_throughput"] is None
    assert metrics["tpot_median"] is None
    assert ran.result.notes == []

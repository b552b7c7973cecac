"""vLLM's AsyncLLM with its detokenizer, held against the built-in engine on the same schedule."""

import json
from urllib.request import Request, urlopen

import psutil
import pytest
from examples import every
from processes import is_alive, until
from vllm_trials import cell, run, schedule, trial

from engines.vllm import stages
from engines.vllm.api_server import ApiServer
from engines.vllm.host_path import HostPathEngine
from harness.trial.engine_config import engine_config
from harness.trial.spec import Mode
from harness.trial.stage_meters import Bytecodes

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("pinned_vllm")]

CORE = {"schedule", "update_from_output", "serialise", "transport", "step"}
FRONT_END = {
    "statistics",
    "deserialise",
    "process_outputs",
    "deliver",
    "transport",
    "event loop",
    "add",
}


def test_it_answers_as_the_built_in_engine_and_tells_its_stages_apart(tmp_path):
    ragged = schedule([1 + i * 7 % 20 for i in range(40)], [8 + i for i in range(40)])
    text = {"detokenizer": "decode_stream"}
    builtin = cell("builtin", **text)
    front_end = cell(
        "vllm-hostpath", front_end="async", engine_core="process", setup="shipped", **text
    )
    modes: list[Mode] = ["stages", "stage_bytecodes"]  # the next test counts too
    expected, served, *results = run(
        [
            trial(ragged, tmp_path, builtin),
            trial(ragged, tmp_path, cell("vllm-hostpath", setup="served", **text)),
            *(trial(ragged, tmp_path, front_end, mode) for mode in modes[:: every()]),
        ]
    )
    texts = {result.text_sha256 for result in (served, *results)}
    assert len(texts) == 1
    assert "" not in texts
    assert [each.role for each in served.processes] == ["engine"]
    for name in ("tokens_sha256", "finish_sha256", "lengths_sha256"):
        assert getattr(served, name) == getattr(expected, name), name
    for result in results:
        for name in ("tokens_sha256", "finish_sha256", "lengths_sha256"):
            assert getattr(result, name) == getattr(expected, name), name
        assert [each.role for each in result.processes] == ["frontend", "engine"]
        state = result.engine_state
        assert (state["front_end"], state["detokenizer"]) == ("async", "decode_stream")
        assert result.stages is not None
        assert result.stages.num_rows == sum(1 + i * 7 % 20 for i in range(40))
        costs = result.stages.per_row()
        assert {stage for role, stage in costs if role == "engine"} >= CORE
        assert {stage for role, stage in costs if role == "frontend"} >= FRONT_END
        assert min(costs.values()) > 0
    costs = results[0].stages.per_row()
    for role in ("frontend", "engine"):
        stages = [amount for (of, stage), amount in costs.items() if of == role and stage != "all"]
        assert sum(stages) < costs[role, "all"]


def test_served_spends_on_outputs_what_a_front_end_of_its_own_spends(tmp_path):
    """Which keeps nothing that it has read of the environment, and the core does."""
    even = schedule([20] * 16, [20] * 16)
    apart = {"front_end": "async", "engine_core": "process", "setup": "shipped"}
    asked = [
        cell("vllm-hostpath", detokenizer="decode_stream", gc="freeze", batch_size=16, **axes)
        for axes in (apart, {"setup": "served"})
    ]
    of_its_own, served = run([trial(even, tmp_path, each, "stage_bytecodes") for each in asked])
    assert of_its_own.stages is not None
    assert served.stages is not None
    assert served.stages.per_row()["engine", "process_outputs"] == pytest.approx(
        of_its_own.stages.per_row()["frontend", "process_outputs"], rel=0.01
    )


def test_its_api_server_answers_and_tells_its_stages_apart(tmp_path):
    of = schedule([20], [8])
    asked = cell(
        "vllm-hostpath",
        setup="shipped",
        detokenizer="decode_stream",
        log_stats="on",
        logprobs="lists:2",
    )
    config = HostPathEngine.complete(engine_config(asked, of))
    before = set(psutil.Process().children(recursive=True))
    server = ApiServer(config, "", tmp_path / "said")
    try:
        started = set(psutil.Process().children(recursive=True)) - before
        server.collective_rpc(stages.begin, Bytecodes)
        body = {
            "prompt": [5] * 8,
            "max_tokens": 20,
            "ignore_eos": True,
            "stream": True,
            "logprobs": 2,
        }
        events = ask(server, "/v1/completions", body).decode().split("\n\n")
        front_end, core = server.collective_rpc(stages.end)
    finally:
        server.shutdown()
    assert "[DONE]" in events[-2]
    choices = [json.loads(each[6:])["choices"][0] for each in events[:-2]]
    assert "".join(each["text"] for each in choices)
    tokens = [tops for each in choices for tops in each["logprobs"]["top_logprobs"]]
    assert len(tokens) == 20
    assert {len(tops) for tops in tokens} <= {2, 3}
    assert {each.role for each in front_end} == {"frontend"}
    assert {each.stage for each in front_end} >= FRONT_END - {"event loop"} | {"sse"}
    assert {each.stage for each in core} >= CORE
    until(lambda: not any(map(is_alive, started)))


def ask(server, path, body):
    """What it answers."""
    asked = Request(
        f"{server.url}{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urlopen(asked, timeout=600) as answer:
        return answer.read()

"""Log-probabilities and echoes of ``gcbench serve``, against what was asked and sampled."""

import json
from itertools import accumulate, chain

import pytest
from served import NULL, serving


@pytest.fixture(scope="module", params=["arrays:2", "lists:2"])
def served(request):
    with serving(*NULL, "--axis", f"logprobs={request.param}") as running:
        yield running


def choice_of(served, **body):
    answer = served.complete(
        **{"max_tokens": 5, "ignore_eos": True, "return_token_ids": True} | body
    )
    assert answer.status == 200, answer
    (choice,) = answer.json()["choices"]
    return choice


def streamed(served, path, body):
    answer = served.ask("POST", path, body | {"stream": True})
    lines = [each[6:] for each in answer.body.decode().split("\n\n") if each]
    assert lines[-1] == "[DONE]"
    return [choice for each in lines[:-1] for choice in json.loads(each)["choices"]]


def text_of(served, token_id):
    return served.ask("POST", "/detokenize", {"tokens": [token_id]}).json()["prompt"]


@pytest.mark.parametrize("count", [0, 1, "2"])
def test_each_token_has_its_own_and_so_many_more(served, count):
    choice = choice_of(served, logprobs=count)
    found = choice["logprobs"]
    texts = [text_of(served, each) for each in choice["token_ids"]]
    assert found["tokens"] == texts
    assert found["text_offset"] == [0, *accumulate(map(len, texts))][:-1]
    for token, own, others in zip(
        texts, found["token_logprobs"], found["top_logprobs"], strict=True
    ):
        assert own < 0
        assert others[token] == own
        assert len(others) <= int(count) + 1


def test_a_stream_says_what_the_whole_says(served):
    headers = {"X-Request-Index": "7", "Content-Type": "application/json"}
    body = {"prompt": [1, 2, 3], "max_tokens": 6, "logprobs": 1, "ignore_eos": True}
    whole = served.ask("POST", "/v1/completions", body, headers).json()["choices"][0]["logprobs"]
    answer = served.ask("POST", "/v1/completions", body | {"stream": True}, headers)
    lines = answer.body.decode().split("\n\n")[:-2]
    chunks = [json.loads(each[6:])["choices"][0]["logprobs"] for each in lines]
    assert whole == {name: list(chain(*(each[name] for each in chunks))) for name in whole}


def test_a_chat_has_them_in_its_own_form(served):
    body = {"messages": [{"role": "user", "content": "a"}], "max_tokens": 4, "ignore_eos": True}
    asked = body | {"logprobs": True, "top_logprobs": 2}
    (whole,) = served.ask("POST", "/v1/chat/completions", asked).json()["choices"]
    assert [len(each["top_logprobs"]) for each in whole["logprobs"]["content"]] == [2] * 4
    parts = [each["logprobs"] for each in streamed(served, "/v1/chat/completions", asked)]
    assert parts[0] is None  # who speaks
    assert sum(len(each["content"]) for each in parts[1:]) == 4
    for each in whole["logprobs"]["content"]:
        assert bytes(each["bytes"]).decode() == each["token"]
    refused = served.ask("POST", "/v1/chat/completions", body | {"top_logprobs": 2})
    assert (refused.status, refused.error["param"]) == (400, "top_logprobs")


@pytest.mark.parametrize("count", [3, -1])
def test_more_than_the_server_has_is_refused(served, count):
    answer = served.complete(logprobs=count)
    assert (answer.status, answer.error["param"]) == (400, "logprobs")
    assert "2 at most" in answer.error["message"]


def test_an_echo_is_the_prompt_and_then_the_output(served):
    headers = {"X-Request-Index": "3", "Content-Type": "application/json"}
    body = {"prompt": "def f(", "max_tokens": 5, "ignore_eos": True}

    def text(**more):
        answer = served.ask("POST", "/v1/completions", body | more, headers)
        return answer.json()["choices"][0]["text"]

    assert text(echo=True) == "def f(" + text()
    parts = streamed(served, "/v1/completions", body | {"echo": True})
    assert "".join(each["text"] for each in parts).startswith("def f(")
    assert sum("def f(" in each["text"] for each in parts) == 1

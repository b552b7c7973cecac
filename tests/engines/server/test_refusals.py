"""What the server does not take: each thing by its status, in OpenAI's form, and it lives on."""

import asyncio
import json

import psutil
import pytest
from examples import examples
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from served import JSON, NULL, Served, num_in_flight, post_bytes, raw, serving

KEY = "correct horse"
WITH_KEY = JSON | {"Authorization": f"Bearer {KEY}"}


@pytest.fixture(scope="module")
def served():
    with serving(*NULL, "--axis", "max-body=100000", "--axis", "max-model-len=200000") as running:
        yield running


def lives(served: Served) -> bool:
    """It answers, and nothing of what was refused is left in it."""
    answer = served.complete(max_tokens=3, ignore_eos=True)
    return answer.status == 200 and answer.json()["usage"]["completion_tokens"] == 3


@pytest.mark.parametrize(
    ("changes", "param", "says"),
    [
        ({"max_tokens": "five"}, "max_tokens", "Expected `int | null`"),
        ({"max_tokens": 5.5}, "max_tokens", "Expected `int | null`"),
        ({"max_tokens": 0}, "max_tokens", "at least 1"),
        ({"max_tokens": -1}, "max_tokens", ">= 0"),
        ({"max_tokens": 10**30}, "max_tokens", ""),
        ({"max_tokens": 200_000}, "max_tokens", "maximum context length is 200000"),
        ({"min_tokens": 50}, None, "min_tokens 50 must be between 0 and max_tokens, 16"),
        ({"prompt": []}, "prompt", "no tokens"),
        ({"prompt": ""}, "prompt", "no tokens"),
        ({"prompt": [[1], []]}, "prompt", "no tokens"),
        ({"prompt": [1, "a"]}, "prompt", "texts and token ids"),
        ({"prompt": [1, -1]}, "prompt[1]", ""),
        ({"prompt": [50257]}, "prompt", "token id 50257 is out of vocabulary"),
        ({"prompt": None}, "prompt", ""),
        ({"prompt": {"a": 1}}, "prompt", ""),
        ({"n": 0}, "n", ">= 1"),
        ({"n": 2, "temperature": 0}, "n", "must be 1"),
        ({"response_format": {"type": "json_object"}}, "response_format", "not supported"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}},
            "response_format",
            "not supported",
        ),
        ({"structured_outputs": {"regex": "a+"}}, "structured_outputs", "not supported"),
        ({"logit_bias": {"50256": -100}}, "logit_bias", "not supported"),
        ({"prompt_logprobs": 1}, "prompt_logprobs", "not supported"),
        ({"frequency_penalty": 5}, "frequency_penalty", "<= 2"),
        ({"presence_penalty": -2.5}, "presence_penalty", ">= -2"),
        ({"repetition_penalty": 0}, "repetition_penalty", "> 0"),
        ({"min_p": 1.5}, "min_p", "<= 1"),
        ({"seed": 2**63}, "seed", ""),
        ({"seed": -(2**63) - 1}, "seed", ""),
        ({"temperature": 2.5}, "temperature", "<= 2"),
        ({"stream_options": {"include_usage": True}}, "stream_options", "without stream"),
        ({"logprobs": 0}, "logprobs", "this server has none"),
        ({"best_of": 3}, "best_of", "not supported"),
        ({"logprobs": "1"}, "logprobs", "this server has none"),
        ({"logprobs": 1, "echo": True}, "echo with logprobs", "not supported"),
        ({"suffix": "x"}, "suffix", "not supported"),
        ({"stop": [""]}, "stop[0]", ""),
        ({"stop": "\ufffd"}, None, "U+FFFD"),
        ({"stop": ["x"] * 65}, "stop", ""),
        ({"temperature": -1}, "temperature", ""),
        ({"top_p": 0}, "top_p", ""),
        ({"top_p": 1.5}, "top_p", ""),
        ({"stream": "yes"}, "stream", ""),
        ({"stream_options": []}, "stream_options", ""),
    ],
)
def test_a_field_that_cannot_be_is_named(served, changes, param, says):
    answer = served.complete(**changes)
    assert answer.status == 400, answer
    error = answer.error
    assert (error["type"], error["param"]) == ("invalid_request_error", param)
    assert says in error["message"]
    assert lives(served)


@pytest.mark.parametrize(
    ("messages", "param"),
    [
        ([], "messages"),
        ("hello", "messages"),
        ([{"content": "x"}], "messages[0]"),
        (
            [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}],
            "messages",
        ),
    ],
)
def test_a_chat_without_text_is_refused(served, messages, param):
    answer = served.ask("POST", "/v1/chat/completions", {"messages": messages})
    assert (answer.status, answer.error["param"]) == (400, param)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"1",
        b"nul",
        b"\xff\xfe",
        b'{"prompt": "\\ud800"}',
        b"[" * 50_000,
        b'{"prompt": ' + b"[" * 40_000,
        b'{"prompt": "a"} x',
        b'{"prompt": NaN}',
    ],
)
def test_what_is_no_body_is_refused(served, body):
    answer = served.ask("POST", "/v1/completions", body)
    assert (answer.status, answer.error["code"]) == (400, None)
    assert lives(served)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/v1", 404),
        ("POST", "/v1/embeddings", 404),
        ("GET", "/../../etc/passwd", 404),
        ("GET", "/v1/../../etc/passwd", 404),
        ("GET", "/%2e%2e/%2e%2e/etc/passwd", 404),
        ("GET", "/v1/models/%00", 404),
        ("GET", "//etc/passwd", 404),
        ("GET", "/v1/completions", 405),
        ("DELETE", "/v1/models", 405),
        ("OPTIONS", "/health", 405),
    ],
)
def test_a_path_or_method_that_is_not_there(served, method, path, status):
    answer = served.ask(method, path)
    assert answer.status == status
    assert answer.error["message"]
    if status == 405:
        assert answer.headers["Allow"]


def test_another_model_is_not_there(served):
    answer = served.complete(model="gpt-5")
    assert (answer.status, answer.error["code"]) == (404, "model_not_found")
    assert served.complete(model="opt-125m").status == 200


def test_unknown_fields_are_ignored_as_in_vllm(served):
    known = served.complete(user="me", tools=[], presence_penalty=1.5, top_k=3, foo={"a": [1]})
    assert known.status == 200


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"tools": [{"type": "function", "function": {"name": "add"}}]}, "tools"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"logprobs": True}, "logprobs"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
    ],
)
def test_what_a_chat_cannot_have_is_refused(served, changes, param):
    body = {"messages": [{"role": "user", "content": "x"}], "max_tokens": 2}
    answer = served.ask("POST", "/v1/chat/completions", body | changes)
    assert (answer.status, answer.error["param"]) == (400, param)
    unused = {"tools": [{"type": "function"}], "tool_choice": "none"}
    assert served.ask("POST", "/v1/chat/completions", body | unused).status == 200


def test_numbers_may_be_texts_and_whole_floats_as_in_vllm(served):
    answer = served.complete(max_tokens="5", min_tokens=5.0, ignore_eos="true", temperature="0.5")
    assert answer.json()["usage"]["completion_tokens"] == 5


@pytest.mark.parametrize("prompt", ["x", ["x", "y"], [[1, 2], [3]]])
def test_n_makes_so_many_choices_of_each_prompt(served, prompt):
    one = served.complete(prompt=prompt, max_tokens=3, ignore_eos=True).json()
    three = served.complete(prompt=prompt, max_tokens=3, ignore_eos=True, n=3).json()
    assert [each["index"] for each in three["choices"]] == list(range(3 * len(one["choices"])))
    assert three["usage"]["prompt_tokens"] == one["usage"]["prompt_tokens"]
    assert three["usage"]["completion_tokens"] == 3 * one["usage"]["completion_tokens"]
    chat = {"messages": [{"role": "user", "content": "x"}], "max_tokens": 3, "n": 2}
    answer = served.ask("POST", "/v1/chat/completions", chat)
    assert len(answer.json()["choices"]) == 2


def test_a_body_must_say_that_it_is_json(served):
    answer = served.ask("POST", "/v1/completions", b'{"prompt": "x"}', {})
    assert "application/json" in answer.error["message"]


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:8000", 200),
        ("127.0.0.2", 200),
        ("[::1]:1", 200),
        ("", 421),
        ("example.com", 421),
        ("example.com:8000", 421),
        ("127.0.0.1.example.com", 421),
        ("10.0.0.1", 421),
        ("localhost:99999999", 421),
    ],
)
def test_a_page_of_another_name_that_leads_here_is_refused(served, host, status):
    for method, path in (("GET", "/v1/models"), ("POST", "/v1/completions")):
        answer = served.ask(method, path, {"prompt": [1]}, JSON | {"Host": host})
        assert answer.status == status
        assert status == 200 or "ask for it by the address" in answer.error["message"]


def test_a_client_that_names_no_host_is_served(served):
    """As HTTP/1.0 has it; no browser speaks it."""

    async def ask() -> bytes:
        reader, writer = await raw(served, b"GET /v1/models HTTP/1.0\r\n\r\n")
        data = await reader.read()
        writer.close()
        return data

    assert b" 200 " in asyncio.run(ask()).splitlines()[0]


def test_a_large_body_is_refused(served):
    answer = served.complete(prompt="x" * 100_000)
    assert (answer.status, answer.error["message"]) == (413, "the body is larger than 100000 bytes")
    assert lives(served)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("prompt", "status", "says"),
    [
        (["a"] * 1_000_000, 400, "1,000,000 prompts, and this server has room for 4,104"),
        (
            "a " * 2_000_000,
            400,
            "this model's maximum context length is 2048 tokens, and no text of 4,000,000 "
            "characters has so few",
        ),
    ],
    ids=["prompts", "text"],
)
def test_what_is_far_too_much_is_refused_before_it_is_worked_on(prompt, status, says):
    """The first held the loop up for more than ten seconds, the second took 500 MB."""
    with serving(*NULL, "--axis", "max-body=10000000") as running:
        before = psutil.Process(running.process.pid).memory_info().rss
        answer = running.complete(prompt=prompt)
        assert (answer.status, answer.error["message"]) == (status, says)
        if isinstance(prompt, str):
            answer = running.ask("POST", "/tokenize", {"prompt": prompt})
            assert (answer.status, answer.error["message"]) == (status, says)
        grown = psutil.Process(running.process.pid).memory_info().rss - before
        assert grown < 100_000_000


@pytest.mark.slow
def test_a_body_that_is_not_what_its_headers_say_is_refused_and_nothing_is_said():
    """Where it is read and where it is not: anybody could fill a disk with tracebacks."""
    with serving(*NULL) as served:
        for encoding in ("deflate", "gzip"):
            headers = JSON | {"Content-Encoding": encoding}
            for path in ("/v1/completions", "/tokenize"):
                answer = served.ask("POST", path, b"neither of them", headers)
                assert (answer.status, answer.error["type"]) == (400, "invalid_request_error")
                assert (
                    f"can not decode content-encoding: {encoding}" in answer.body.decode().lower()
                )
            head = f"POST /ping HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: {encoding}\r\n"
            assert asyncio.run(both_halves(served, f"{head}Content-Length: 9\r\n\r\n".encode()))
        assert lives(served)
        assert served.end()[::2] == (0, "")


async def both_halves(served: Served, head: bytes) -> bytes:
    """All that comes where a body begins well enough for an answer and then breaks."""
    reader, writer = await raw(served, head)
    answer = await reader.readuntil(b"\r\n\r\n")
    writer.write(b"neither!!")
    answer += await reader.read()
    writer.close()
    return answer


@pytest.mark.parametrize(
    "head",
    [
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-A: " + b"a" * 4_000_000 + b"\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + b"X-A: a\r\n" * 99_999 + b"\r\n",
        b"GET /" + b"a" * 4_000_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 100,
        b"\r\n" * 1000,
        b"BREW /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"POST /ping HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
    ids=[
        "long header",
        "many headers",
        "long path",
        "TLS",
        "empty lines",
        "no method",
        "negative length",
        "bad chunk",
    ],
)
def test_what_is_no_http_is_cut_off(served, head):
    async def send() -> bytes:
        reader, writer = await asyncio.open_connection(*served.address)
        try:
            writer.write(head)
            writer.write_eof()
            return await reader.read()
        except OSError:  # it has hung up already: reset, or not connected any more
            return b""
        finally:
            writer.close()

    answer = asyncio.run(send())
    assert not answer or answer.split()[1].startswith(b"4"), answer[:100]
    assert lives(served)


@pytest.mark.parametrize(
    ("head", "status", "says"),
    [
        (b"Content-Length: 10000000", 413, "the body is larger than 100000 bytes"),
        (b"Expect: 100-continue\r\nContent-Length: 10000000", 413, "larger than 100000 bytes"),
        (b"Expect: tea\r\nContent-Length: 2", 417, "100-continue alone"),
        (b"X-A: " + b"a" * 100_000, 431, "a line of the head is too long"),
        (b"no header", 400, "this is no HTTP that is served"),
    ],
)
def test_what_its_head_rules_out_is_refused_before_its_body_comes(served, head, status, says):
    """In the form of all errors, and without what was sent."""

    async def send() -> bytes:
        line = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        about = b"Content-Type: application/json\r\n"
        reader, writer = await raw(served, line + about + head + b"\r\n\r\n")
        try:
            return await reader.readuntil(b"}}")
        finally:
            writer.close()

    answer, body = asyncio.run(send()).split(b"\r\n\r\n")
    assert int(answer.split()[1]) == status
    assert says in json.loads(body)["error"]["message"]
    assert len(body) < 300


def test_whoever_asks_whether_to_send_a_body_is_told_so(served):
    async def ask() -> bytes:
        body = b'{"prompt": [1], "max_tokens": 1}'
        head = f"Content-Length: {len(body)}\r\nExpect: 100-continue\r\nConnection: close\r\n"
        line = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
        about = "Content-Type: application/json\r\n"
        reader, writer = await raw(served, f"{line}{about}{head}\r\n".encode())
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(body)
        answer = await reader.read()
        writer.close()
        return answer

    assert asyncio.run(ask()).split()[1] == b"200"


def test_ids_that_are_no_tokens_and_half_a_pair_are_named(served):
    answer = served.ask("POST", "/detokenize", {"tokens": [1, 999_999]})
    assert (answer.status, answer.error["param"]) == (400, "tokens")
    assert "token id 999999 is none of" in answer.error["message"]
    answer = served.ask("POST", "/tokenize", b'{"prompt": "\\ud800"}', JSON)
    assert answer.error["message"].endswith("half a surrogate pair in a text")
    answer = served.complete(prompt=[1], model="m" * 90_000)
    assert answer.status == 404
    assert len(answer.error["message"]) < 200


@pytest.mark.parametrize("value", ["-1", "1.5", "x", "", str(2**53), "9" * 5000, "١"])
def test_a_number_that_is_none_is_refused(served, value):
    headers = JSON | {"X-Request-Index": value.encode().decode("latin-1")}
    answer = served.ask("POST", "/v1/completions", {"prompt": [1]}, headers)
    assert "X-Request-Index" in answer.error["message"]


def test_a_number_that_runs_already_is_refused(served):
    async def ask() -> None:
        body = {"prompt": [1], "max_tokens": 199_999, "ignore_eos": True, "stream": True}
        numbered = post_bytes("/v1/completions", body).replace(
            b"\r\n", b"\r\nX-Request-Index: 7\r\n", 1
        )
        reader, writer = await raw(served, numbered)
        await reader.readuntil(b"data: ")
        headers = JSON | {"X-Request-Index": "6"}
        answer = await asyncio.to_thread(
            served.ask, "POST", "/v1/completions", {"prompt": ["a", "b"]}, headers
        )
        assert answer.status == 400
        assert "7: a request of this number is running" in answer.error["message"]
        writer.close()

    asyncio.run(ask())


@pytest.fixture(scope="module")
def guarded():
    with serving(*NULL, "--host", "0.0.0.0", GCBENCH_API_KEY=KEY) as running:
        yield running


@pytest.mark.slow
@pytest.mark.parametrize(
    "given",
    [
        "",
        "Bearer",
        "Bearer ",
        f"Bearer {KEY[:-1]}",
        f"Bearer {KEY}x",
        "Bearer é",
        f"Basic {KEY}",
        "Bearer " + "a" * 5000,
    ],
)
def test_without_the_key_there_is_nothing(guarded, given):
    headers = JSON | {"Authorization": given}
    for method, path in (
        ("POST", "/v1/completions"),
        ("GET", "/v1/models"),
        ("GET", "/metrics"),
        ("POST", "/tokenize"),
        ("GET", "/nowhere"),
    ):
        answer = guarded.ask(method, path, {"prompt": [1]}, headers)
        assert (answer.status, answer.error["code"]) == (401, "invalid_api_key")
    assert guarded.ask("GET", "/health").status == 200


@pytest.mark.slow
def test_with_the_key_there_is_all(guarded):
    answer = guarded.ask("POST", "/v1/completions", {"prompt": [1]}, WITH_KEY)
    assert answer.status == 200
    assert KEY.encode() not in answer.body


@pytest.fixture(scope="module")
def fuzzed():
    """One whose outputs are short, however much is asked for."""
    with serving(*NULL, "--axis", "max-model-len=64") as running:
        yield running


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=8,
)
fields = st.sampled_from(
    [
        "prompt",
        "messages",
        "max_tokens",
        "min_tokens",
        "stop",
        "stop_token_ids",
        "stream",
        "n",
        "stream_options",
        "temperature",
        "top_p",
        "seed",
        "priority",
        "ignore_eos",
        "model",
        "include_stop_str_in_output",
        "return_token_ids",
        "logprobs",
        "max_completion_tokens",
        "best_of",
        "tokens",
    ]
)
meant = st.fixed_dictionaries(
    {},
    optional={
        "prompt": st.text(max_size=30) | st.lists(st.integers(0, 60_000), max_size=5),
        "messages": st.lists(st.fixed_dictionaries({"role": st.text(), "content": st.text()})),
        "max_tokens": st.integers(-1, 30),
        "min_tokens": st.integers(-1, 30),
        "stop": st.lists(st.text(max_size=3), max_size=3),
        "stream": st.booleans(),
        "priority": st.integers(-(2**40), 2**40),
        "ignore_eos": st.booleans(),
        "stop_token_ids": st.lists(st.integers(0, 2**33), max_size=3),
    },
)
bodies = st.builds(
    lambda good, odd: good | odd, meant, st.dictionaries(fields, json_values, max_size=3)
)
paths = st.sampled_from(["/v1/completions", "/v1/chat/completions", "/tokenize", "/detokenize"])
ALLOWED = {200, 400, 404}


def fuzz(served: Served, path: str, body: object) -> None:
    data = json.dumps(body).encode()  # NaN and lone surrogates included
    answer = served.ask("POST", path, data)
    assert answer.status in ALLOWED, (answer, data)
    if answer.status != 200:
        assert answer.error["message"]
    elif isinstance(body, dict) and body.get("stream") is True and "completions" in path:
        assert answer.body.endswith(b"data: [DONE]\n\n")
        events = answer.body.decode().removesuffix("data: [DONE]\n\n").split("\n\n")
        assert not any(
            "error" in json.loads(event.removeprefix("data: ")) for event in events if event
        )


@pytest.mark.slow
@examples(200, unchecked=[HealthCheck.function_scoped_fixture])
@given(path=paths, body=bodies)
def test_no_body_is_too_odd(fuzzed, path, body):
    fuzz(fuzzed, path, body)


@pytest.mark.slow
@examples(200, unchecked=[HealthCheck.function_scoped_fixture])
@given(path=paths, data=st.binary(max_size=200))
def test_no_bytes_are_too_odd(fuzzed, path, data):
    answer = fuzzed.ask("POST", path, data)
    assert (answer.status, bool(answer.error["message"])) == (400, True)


@pytest.mark.slow
@examples(6_000, unchecked=list(HealthCheck))
@given(path=paths, body=bodies)
def test_thousands_of_bodies_are_not_too_odd(fuzzed, path, body):
    fuzz(fuzzed, path, body)


@pytest.mark.slow
def test_nothing_is_left_of_all_that_and_nothing_was_said(fuzzed):
    assert num_in_flight(fuzzed) == 0
    assert lives(fuzzed)
    assert fuzzed.end()[::2] == (0, "")

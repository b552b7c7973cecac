"""What goes out: one HTTP message, standard fields, and nothing where the key should not be."""

import json

import httptools
import numpy as np
import pytest

from engines.openai.request_body import Question, check_key, request_bytes
from engines.openai.target import parse_target
from engines.protocol import SamplingParams

IDS = np.array([5, 6, 70000], np.int32)
TARGET = parse_target("http://host:8000/v1")
PARAMS = SamplingParams(max_tokens=4)
STANDARD = {"model", "max_tokens", "temperature", "stream", "stream_options"}


def sent(question, params=PARAMS, target=TARGET, **more):
    """Method and path, headers, body, as a server's parser reads them."""
    headers, bodies, urls = {}, [], []

    class Read:
        def on_url(self, url):
            urls.append(url.decode())

        def on_header(self, name, value):
            headers[name.decode().lower()] = value.decode()

        def on_body(self, body):
            bodies.append(body)

    parser = httptools.HttpRequestParser(Read())
    parser.feed_data(request_bytes(target, question, IDS, params, **more))
    return urls[0], headers, json.loads(b"".join(bodies))


def test_token_ids_go_out_as_they_are():
    url, headers, body = sent(Question("m"))
    assert url == "/v1/completions"
    assert headers["host"] == "host:8000"
    assert "authorization" not in headers
    assert body["prompt"] == IDS.tolist()
    assert body["stream_options"] == {"include_usage": True}
    assert body["ignore_eos"] is True
    assert body.keys() == STANDARD | {"prompt", "ignore_eos", "return_token_ids"}


@pytest.mark.parametrize(("form", "field"), [("text", "prompt"), ("chat", "messages")])
def test_a_text_has_a_word_for_each_token(form, field):
    url, _, body = sent(Question("m", prompt_as=form, standard_fields=True))
    said = body[field] if form == "text" else body[field][0]["content"]
    assert len(said.split()) == len(IDS)
    assert url == ("/v1/completions" if form == "text" else "/v1/chat/completions")
    assert body.keys() == STANDARD | {field}


def test_fields_that_only_some_servers_know_can_be_left_out():
    params = SamplingParams(max_tokens=4, min_tokens=2, stop_token_ids=(9,), stop=("x",))
    _, _, body = sent(Question("m"), params, priority=3)
    own = {"min_tokens": 2, "stop_token_ids": [9], "priority": 3, "stop": ["x"]}
    assert own.items() <= body.items()
    _, _, body = sent(Question("m", standard_fields=True), params, priority=3)
    assert body.keys() == STANDARD | {"prompt", "stop"}


def test_extra_fields_are_set_and_taken_away():
    extra = {"temperature": None, "top_k": 5}
    _, _, body = sent(Question("m", extra_body=extra))
    assert body["top_k"] == 5
    assert "temperature" not in body


def test_the_key_is_a_header():
    _, headers, body = sent(Question("m", api_key="secret"))
    assert headers["authorization"] == "Bearer secret"
    assert "secret" not in json.dumps(body)


@pytest.mark.parametrize("key", ["a\r\nX: y", "a b", "ü", "a\x00"])
def test_a_key_that_no_header_can_hold_is_refused_unsaid(key):
    with pytest.raises(ValueError, match="no header can hold") as said:
        check_key(key)
    assert key not in str(said.value)


@pytest.mark.parametrize(
    ("url", "host", "port", "path"),
    [
        ("http://h", "h", 80, ""),
        ("h:9", "h", 9, ""),
        ("http://h:9/v1/", "h", 9, ""),
        ("http://h:9/base/v1", "h", 9, "/base"),
        ("http://[::1]:9", "::1", 9, ""),
        ("https://h/base", "h", 443, "/base"),
        ("http://h/v1/chat/completions", "h", 80, ""),
        (
            "https://h/openai/deployments/m/chat/completions?api-version=1",
            "h",
            443,
            "/openai/deployments/m",
        ),
        ("http://h/a/v1/completions?x=y", "h", 80, "/a"),
        ("http://h/v1/embeddings", "h", 80, ""),
        ("https://h/openai/embeddings?api-version=1", "h", 443, "/openai"),
    ],
)
def test_addresses_are_read(url, host, port, path):
    target = parse_target(url)
    assert (target.host, target.port, target.path) == (host, port, path)
    assert parse_target(target.url).url == target.url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "ftp://h",
        "http://",
        "http://h:x",
        "http://h:99999",
        "http://h:0",
        "http://k@h",
        "http://u:k@h",
        "http://h/?api-key=b",
        "http://h/#a",
        "http://ü",
        "http://h h",
        "http://h/\r\nX: y",
    ],
)
def test_what_is_no_address_is_refused_in_a_sentence(url):
    with pytest.raises(ValueError, match="give it as http://HOST:PORT"):
        parse_target(url)


@pytest.mark.parametrize(
    ("form", "field"), [("ids", "input"), ("text", "input"), ("chat", "messages")]
)
def test_an_embedding_is_asked_for_without_a_word_on_tokens(form, field):
    target = parse_target("http://h/v1/embeddings")
    url, _, body = sent(Question("m", prompt_as=form), target=target)
    assert url == "/v1/embeddings"
    assert body.keys() == {"model", field}
    if form == "ids":
        assert body["input"] == IDS.tolist()


def test_an_address_without_v1_is_asked_as_it_stands():
    target = parse_target("http://h/openai/embeddings")
    assert sent(Question("m"), target=parse_target(target.url))[0] == "/openai/embeddings"

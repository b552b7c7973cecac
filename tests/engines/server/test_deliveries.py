"""Clients are answered in the same bytes, whether the engine delivers by request or by column."""

import asyncio
import json
import re
from random import Random
from typing import Any, NamedTuple

import pytest
from served import JSON, Served, post_bytes, raw, serving, session, stream, until_idle

COUNT, PROMPT = 24, [5, 6, 7]
STOPS = ("e", "in", " t", "()", "\n", "é")
FLAGS = (
    *("--device", "null", "--batch-size", "6", "--seed", "3"),
    *("--axis", "detokenizer=byte_table", "--axis", "tokens-per-step=1..3"),
    *("--representation", "flat_arrays"),
)


def bodies() -> list[dict[str, Any]]:
    """Stop strings, stop tokens, a minimum, an end of text that is heeded, several prompts."""
    random = Random(8)
    made = []
    for _ in range(COUNT):
        length = random.randint(1, 60)
        made.append(
            {
                "prompt": random.choice([PROMPT, PROMPT, [PROMPT, [9]]]),
                "max_tokens": length,
                "min_tokens": random.choice([0, 0, min(4, length)]),
                "stop": random.sample(STOPS, random.choice([0, 0, 1, 3])),
                "stop_token_ids": random.sample(range(8192), random.choice([0, 40])),
                "include_stop_str_in_output": random.random() < 0.5,
                "ignore_eos": random.random() < 0.5,
                "return_token_ids": random.random() < 0.5,
            }
        )
    return made


class Heard(NamedTuple):
    """All answers of a server, by request.

    ``whole``: their bytes. ``streamed``: by choice and number of its tokens so far what it had
    been told by then, for a chunk has what several steps brought where its reader was slow.
    """

    whole: list[bytes]
    streamed: list[dict[tuple[int, int], tuple[Any, ...]]]


def ask_all(served: Served) -> Heard:
    asked = bodies()
    whole = []
    for nth, body in enumerate(asked):
        answer = served.ask("POST", "/v1/completions", body, numbered(2 * nth))
        assert answer.status == 200, answer
        whole.append(nobodys(answer.body))
    return Heard(whole, asyncio.run(streams(served, asked)))


def numbered(index: int) -> dict[str, str]:
    return JSON | {"X-Request-Index": str(index)}


def post_numbered(body: dict[str, Any], index: int) -> bytes:
    header = f"\r\nX-Request-Index: {index}\r\n".encode()
    return post_bytes("/v1/completions", body).replace(b"\r\n", header, 1)


def nobodys(answer: bytes) -> bytes:
    """Without what names one answer of all, and when it was."""
    answer, count = re.subn(rb'"id":"cmpl-[0-9a-f]{32}"', b'"id":""', answer)
    answer, also = re.subn(rb'"created":\d+', b'"created":0', answer)
    assert (count, also) == (1, 1)
    return answer


async def streams(
    served: Served, asked: list[dict[str, Any]]
) -> list[dict[tuple[int, int], tuple[Any, ...]]]:
    """At once, among clients who leave."""
    leaving = {"prompt": PROMPT, "max_tokens": 2_000, "ignore_eos": True, "stream": True}
    async with session(served) as http:
        gone = [await raw(served, post_numbered(leaving, 1000 + nth)) for nth in range(4)]
        options = {"include_usage": True, "continuous_usage_stats": True}
        each = [
            stream(http, "/v1/completions", body | {"stream_options": options}, numbered(2 * nth))
            for nth, body in enumerate(asked)
        ]
        reading = asyncio.gather(*each)
        for reader, writer in gone:
            await reader.readuntil(b"data: ")
            writer.transport.abort()
        chunks = await reading
    await until_idle(served)
    return [told(each) for each in chunks]


def told(chunks: list[Any]) -> dict[tuple[int, int], tuple[Any, ...]]:
    *chunks, last = chunks
    states: dict[tuple[int, int], tuple[Any, ...]] = {(-1, 0): (last["choices"], last["usage"])}
    texts, tokens = {}, {}
    for chunk in chunks:
        (choice,) = chunk.pop("choices")
        nth, usage = choice["index"], chunk["usage"]
        texts[nth] = texts.get(nth, "") + choice.pop("text")
        tokens[nth] = tokens.get(nth, []) + choice.pop("token_ids", [])
        choice.pop("prompt_token_ids", None)
        state = texts[nth], tokens[nth], json.dumps(choice), usage
        states[nth, usage["completion_tokens"]] = state
    return states


@pytest.mark.landing
def test_by_column_each_client_hears_what_it_hears_by_request():
    heard = []
    for delivery in ("per_request", "columnar"):
        with serving(*FLAGS, "--delivery", delivery) as served:
            heard.append(ask_all(served))
    rows, columns = heard
    assert columns.whole == rows.whole
    reasons = b"".join(rows.whole)
    assert all(f'"finish_reason":"{why}"'.encode() in reasons for why in ("stop", "length"))
    num_common = 0
    for one, other in zip(rows.streamed, columns.streamed, strict=True):
        common = one.keys() & other.keys()
        assert {state: one[state] for state in common} == {state: other[state] for state in common}
        ends = [
            {choice: max(n for c, n in each if c == choice) for choice, _ in each}
            for each in (one, other)
        ]
        assert ends[0] == ends[1], "each ends with the same token"
        num_common += len(common)
    assert num_common > 3 * COUNT

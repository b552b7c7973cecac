"""One request before a run: what the server makes of it, and which flags would help."""

import asyncio
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np

from engines.openai.capture import Recording
from engines.openai.client import Client
from engines.openai.outcome import WHOLE, Outcome
from engines.openai.plain_get import context_length
from engines.openai.request_body import PromptAs, Question, request_bytes
from engines.openai.response import CountSource, Response, count_words, read_response
from engines.openai.responses import pieces_by_request
from engines.openai.stream_event import Kind
from engines.openai.target import Target
from engines.protocol import EngineDeadError, FinishReason, Int32Array
from harness import format as fmt
from harness.load.prompt_file import read_prompts
from harness.load.refusals import flag_for, is_final
from harness.load.task import Asked
from harness.trial.client import sampling_params
from workloads.schedule import Schedule

WARM_TOKENS = 8
_MOST_SECONDS = 60.0
_LOOK_SECONDS = 0.1


class Answered(NamedTuple):
    """What a server answered, and how long a request may be (None: it does not say)."""

    response: Response
    asked: int
    context: int | None


def question_of(asked: Asked, api_key: str) -> Question:
    """What all requests of a run have in common."""
    return Question(
        model=asked.model,
        prompt_as=cast(PromptAs, asked.prompt_as),
        standard_fields=asked.standard_fields,
        extra_body=asked.extra_body,
        api_key=api_key,
        headers=asked.headers,
    )


def warm_prompt(schedule: Schedule, request: int, vocab_size: int) -> Int32Array:
    """Back to front: a prefix cache must not know the prompts that are to come."""
    return np.ascontiguousarray(schedule.prompt_token_ids(request, vocab_size)[::-1])


def look_ahead(target: Target, asked: Asked, schedule: Schedule, api_key: str) -> Answered:
    """Ask as the run will, for a few tokens, by a prompt that has the largest token id.

    Raises EngineDeadError where the server refuses what no second attempt would change.
    """
    prompt = warm_prompt(schedule, 0, asked.vocab_size).copy()
    prompt[-1] = asked.vocab_size - 1
    params = sampling_params(schedule, WARM_TOKENS)[0]
    own = read_prompts(Path(asked.prompts))[0] if asked.prompts else None
    content = request_bytes(target, question_of(asked, api_key), prompt, params, own=own)
    waiting = _answered(target, content, params.max_tokens, asked.request_timeout)
    recording = asyncio.run(waiting)
    (pieces,) = pieces_by_request(recording)
    response = read_response(pieces, Outcome(int(recording.ended[0])), params.max_tokens)
    if api_key:
        response.message = response.message.replace(api_key, "[API key]")
    if is_final(response):
        raise EngineDeadError(f"{target.url} refuses what the run would ask: {_failure(response)}")
    return Answered(response, params.max_tokens, context_length(target, asked.model, api_key))


async def _answered(
    target: Target, content: bytes, tokens: int, timeout_seconds: float
) -> Recording:
    seconds = min(timeout_seconds or _MOST_SECONDS, _MOST_SECONDS)
    loop = asyncio.get_running_loop()
    asked = np.array([tokens], np.int32)
    client = Client(loop, [target], [content], asked, 4 * tokens, int(seconds * 1e9))
    over: asyncio.Future[int] = loop.create_future()
    client.on_end = over.set_result
    client.add_request(0)
    while not over.done():
        await asyncio.wait([over], timeout=_LOOK_SECONDS)
        client.abort_late()
    client.close()
    await asyncio.sleep(0)  # until the connection is
    return client.recording(1)


def preflight_lines(found: Answered, asked: Asked, schedule: Schedule) -> list[str]:
    """What was found in three lines: the answer, its length, and the room that there is."""
    response = found.response
    if response.outcome not in WHOLE:
        return [f"preflight: {_failure(response)}"]
    if response.counted_by == CountSource.NO_TOKENS:
        return [f"preflight: an embedding came, of {fmt.count(response.prompt_tokens)} tokens"]
    return [
        f"preflight: {_counted(response)}",
        f"preflight: {_length(found, asked, schedule.ignore_eos)}",
        f"preflight: {_room(found, asked, schedule)}",
    ]


def _failure(response: Response) -> str:
    kind = response.outcome.name.lower().replace("_", " ")
    said = f"{kind}: {response.message}" if response.message else kind
    flag = flag_for(response.message)
    return f"{said}; {flag}" if flag else said


def _counted(response: Response) -> str:
    events = f"{len(response.delivered_ns)} events brought text or token ids"
    match response.counted_by:
        case CountSource.TOKEN_IDS:
            said = "the server sends token ids, which are counted"
        case CountSource.USAGE:
            said = "no token ids; usage counts tokens"
        case _:
            said = "no token ids and no usage: --tokenizer FILE counts the text, or else figures "
            said += "of tokens are unknown"
    unknown = response.kinds[Kind.UNKNOWN]
    return f"{events}; {said}" + (f"; {unknown} have no form that is known" if unknown else "")


def _length(found: Answered, asked: Asked, ignores_eos: bool) -> str:
    response = found.response
    said = f"{count_words(response.num_tokens)} of {found.asked} tokens came, finish reason "
    if response.finish_reason == FinishReason.LENGTH:
        return f"{said}length"
    said += "stop"
    if not ignores_eos:
        return said
    if asked.standard_fields:
        return (
            f"{said}: --standard-fields leaves ignore_eos out, so answers have lengths of their own"
        )
    return f"{said}: ignore_eos is not heeded, so answers have lengths of their own"


def _room(found: Answered, asked: Asked, schedule: Schedule) -> str:
    longest = int((schedule.prompt_lens.astype(np.int64) + schedule.output_lens).max())
    asks = f"the longest request has {fmt.count(longest)} tokens"
    if asked.prompts:
        longest = int(schedule.output_lens.max())
        asks = f"the longest answer has {fmt.count(longest)} tokens beside its own prompt"
    if found.context is None:
        return f"the server does not say how long its context is; {asks}"
    room = f"context of {fmt.count(found.context)} tokens, {asks}"
    return room if longest <= found.context else f"{room}: {flag_for('context length')}"

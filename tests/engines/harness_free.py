"""Random requests, a plain-Python oracle for their tokens, and a loop that runs them."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Any, NamedTuple

import numpy as np

from engines.builtin.engine import Engine
from engines.builtin.registries import DELIVERIES, OUTPUT_PROCESSING, REPRESENTATIONS
from engines.protocol import (
    ContradictionError,
    Delivered,
    EngineConfig,
    FinishReason,
    SamplingParams,
)

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
LONGEST_PROMPT, MOST_TOKENS = 40, 20
MAX_MODEL_LEN = 64
STOPS = ["a", "e", "th", "in", " ", "0", "=", "er "]


class Request(NamedTuple):
    index: int
    prompt_length: int
    max_tokens: int
    stop_token_ids: tuple[int, ...]
    add_at: int
    abort_at: int | None
    priority: int = 0
    min_tokens: int = 0
    stop: tuple[str, ...] = ()
    ignore_eos: bool = True

    @property
    def params(self) -> SamplingParams:
        return SamplingParams(
            self.max_tokens,
            min_tokens=min(self.min_tokens, self.max_tokens),
            stop_token_ids=self.stop_token_ids,
            stop=self.stop,
            ignore_eos=self.ignore_eos,
        )


class Run(NamedTuple):
    """What became of the requests, by number; and the order in which the unaborted ended.

    ``tokens`` and ``texts`` are theirs, ``texts`` empty without a detokenizer. ``num_tokens``: how
    many each had been given, the aborted ones too.
    """

    tokens: dict[int, list[int]]
    reasons: dict[int, FinishReason]
    order: list[int]
    texts: dict[int, str]
    num_tokens: dict[int, int]


SEVERAL_TOKENS: tuple[dict[str, Any], ...] = (
    {"num_accepted": (1, 2, 4), "num_scheduler_steps": 1},
    {"num_accepted": (1,), "num_scheduler_steps": 4},
)
"""The ways in which a step can bring a request more than one."""


def null_config(**fields: object) -> EngineConfig:
    return EngineConfig(
        **{"max_num_seqs": 8, "max_model_len": MAX_MODEL_LEN, "device": "null"} | fields
    )


def draw_config(random: Random) -> EngineConfig:
    num_accepted = random.choice([(1,), tuple(random.choices(range(1, 5), k=random.randint(1, 7)))])
    several = num_accepted == (1,) and random.random() < 0.5
    block_size = random.choice([1, 4, 16])
    one_request = -(-(MAX_MODEL_LEN + 2 * max(num_accepted)) // block_size)
    return null_config(
        max_num_seqs=random.randint(1, 12),
        max_num_batched_tokens=random.choice([max(num_accepted), random.randint(4, 60), 500]),
        block_size=block_size,
        num_gpu_blocks_override=random.choice([0, random.randint(one_request, 3 * one_request)]),
        enable_prefix_caching=random.random() < 0.5,
        scheduling_policy=random.choice(["fcfs", "priority"]),
        seed=random.randint(0, 2**32),
        num_accepted=num_accepted,
        num_scheduler_steps=random.choice([2, 4, 8]) if several else 1,
        vocab_size=random.choice([3, 12, 60, 50272]),
    )


def draw_requests(
    random: Random, config: EngineConfig, first_index: int = 0, aborts: bool = True
) -> list[Request]:
    def draw(index: int) -> Request:
        stops = random.sample(range(min(config.vocab_size, 60)), k=random.randint(0, 3))
        abort = aborts and random.random() < 0.25
        return Request(
            index,
            random.randint(1, LONGEST_PROMPT),
            random.randint(1, MOST_TOKENS),
            tuple(stops),
            random.randint(0, 12),
            random.randint(0, 25) if abort else None,
            random.randint(-1, 1),
        )

    return [draw(first_index + i) for i in range(random.randint(1, 14))]


def with_text(random: Random, config: EngineConfig) -> EngineConfig:
    """The same with text to make, few enough different tokens to meet the end-of-sequence one."""
    return replace(
        config,
        vocab_size=random.choice([60, 8_000]),
        eos_token_id=random.randrange(60),
        detokenizer="byte_table",
        logprobs=random.choice(["none", "arrays:2"]),
    )


def wishes(random: Random, request: Request) -> Request:
    """The same with a minimum, stop strings and an end-of-sequence token to heed."""
    return request._replace(
        min_tokens=random.choice([0, random.randint(0, MOST_TOKENS)]),
        stop=tuple(
            random.sample(["a", "e", "th", "in", " ", "0", "=", "er "], random.randint(0, 2))
        ),
        ignore_eos=random.random() < 0.5,
    )


def goes_together(config: EngineConfig) -> bool:
    """Whether the built-in engine can be built of these parts, each of which it knows."""
    try:
        Engine.complete(config)
    except ContradictionError:
        return False
    return True


def variants(**fields: str) -> Iterator[tuple[str, str]]:
    """Every representation with every delivery it goes with."""
    for representation in REPRESENTATIONS.names():
        for delivery in DELIVERIES.names():
            config = null_config(representation=representation, delivery=delivery, **fields)
            if goes_together(config):
                yield representation, delivery


MODES = [each for each in OUTPUT_PROCESSING.names() if each != "process"]
"""Those that start no process; `test_output_process` has the other."""
EXACT_MODES = [mode for mode in MODES if OUTPUT_PROCESSING.load(mode).is_exact]


def are_alike(one: Run, other: Run, mode: str) -> bool:
    """Whether it made no difference. In a mode with a thread of its own what comes before an abort
    is a matter of time, so there only those count that nobody aborted.
    """
    if mode in EXACT_MODES:
        return one == other
    ended = one.tokens.keys() & other.tokens.keys()
    texts = one.texts.keys() & other.texts.keys()
    return all(
        (one.tokens[i], one.reasons[i]) == (other.tokens[i], other.reasons[i]) for i in ended
    ) and all(one.texts[i] == other.texts[i] for i in texts)


def _mix(x: int) -> int:
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


def oracle(config: EngineConfig, request: Request) -> tuple[list[int], FinishReason]:
    """A request's tokens and why it ends, had nobody aborted it."""
    key = _mix((request.index * _GOLDEN + _mix(config.seed)) & _MASK)
    tokens: list[int] = []
    while len(tokens) < request.max_tokens:
        tokens.append(_mix((key + len(tokens)) & _MASK) % config.vocab_size)
        stops = {*request.stop_token_ids, *(() if request.ignore_eos else (config.eos_token_id,))}
        if tokens[-1] in stops and len(tokens) > request.params.min_tokens:
            return tokens, FinishReason.STOP
    return tokens, FinishReason.LENGTH


def add(engine: Engine, request: Request) -> None:
    prompt = np.arange(request.prompt_length, dtype=np.int32)
    engine.add_request(request.index, prompt, request.params, request.priority)


def run(engine: Engine, requests: Sequence[Request]) -> Run:
    """Add, abort and step until all is done; checks that what was streamed is what is kept."""
    streamed: dict[int, list[int]] = defaultdict(list)
    counted: dict[int, int] = defaultdict(int)
    reasons: dict[int, FinishReason] = {}
    order: list[int] = []
    last = max(max(r.add_at, r.abort_at or 0) for r in requests)
    step = 0
    while step <= last or engine.has_unfinished_requests():
        for request in requests:
            if request.add_at == step:
                add(engine, request)
            if request.abort_at == step and request.index not in reasons:
                if request.add_at <= step:
                    reasons[request.index] = FinishReason.ABORT
                engine.abort_request(request.index)
        for delivered in engine.step().delivered:
            for index, count in _rows(delivered):
                assert reasons.get(index) is None, "nothing comes after the end"
                counted[index] += count
            for made in delivered.outputs:
                tokens = made.outputs[0].token_ids
                streamed[made.request_index] += [tokens] if isinstance(tokens, int) else tokens
            ended = delivered.finished.tolist()
            order += ended
            why = map(FinishReason, delivered.finish_reasons.tolist())
            reasons.update(zip(ended, why, strict=True))
        step += 1
        assert step < 5000, "the engine makes no progress"
    has_text = engine.config.detokenizer != "none"
    ended = [i for i, reason in reasons.items() if reason is not FinishReason.ABORT]
    texts = {index: engine.output_text(index) for index in ended} if has_text else {}
    tokens_of = {index: engine.output_token_ids(index) for index in ended}
    assert all(tokens.dtype == np.int32 for tokens in tokens_of.values())
    kept = {index: tokens.tolist() for index, tokens in tokens_of.items()}
    assert {index: len(tokens) for index, tokens in kept.items()} == {i: counted[i] for i in kept}
    assert not streamed or {index: streamed[index] for index in kept} == kept
    assert not streamed or {i: len(tokens) for i, tokens in streamed.items()} == counted
    return Run(kept, reasons, order, texts, {i: count for i, count in counted.items() if count})


def _rows(delivered: Delivered) -> Iterator[tuple[int, int]]:
    return zip(delivered.request_index.tolist(), delivered.num_tokens.tolist(), strict=True)


def check_against_oracle(config: EngineConfig, requests: Sequence[Request], got: Run) -> None:
    for request in requests:
        tokens, reason = oracle(config, request)
        if got.reasons[request.index] is FinishReason.ABORT:
            assert got.num_tokens.get(request.index, 0) <= len(tokens)
        else:
            assert got.tokens[request.index] == tokens
            assert got.reasons[request.index] is reason
    ended = [i for i, reason in got.reasons.items() if reason is not FinishReason.ABORT]
    assert sorted(got.order) == sorted(ended)

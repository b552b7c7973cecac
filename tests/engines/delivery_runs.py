"""Requests driven through a delivery alone: any split, preemptions, aborts, rows handed on.

Tokens are written down beforehand, so that a character or a stop string can be cut wherever it is
wanted; what must come of them is worked out token by token with the tokenizers library.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import product
from random import Random
from typing import Any, NamedTuple

import numpy as np
from tokenizers import Tokenizer

from engines.builtin.delivery.choice import delivery_contradiction, load_delivery
from engines.builtin.delivery.processor import OutputProcessor
from engines.builtin.delivery.stage import EndedOutput, Processed, StepTokens
from engines.builtin.delivery.streams import RequestStreams
from engines.builtin.logprobs import DeviceLogprobs, load_logprobs, parse_logprobs
from engines.builtin.registries import DELIVERIES, DETOKENIZERS, REPRESENTATIONS
from engines.builtin.representations import PLACEHOLDER_TOKEN_ID
from engines.builtin.request_table import Request, RequestTable
from engines.protocol import EngineConfig, FinishReason, SamplingParams

MOST_TOKENS = 24
_WIDTH = 4


class Asked(NamedTuple):
    """A request whose sampled tokens are known; aborted once it has ``abort_at`` of them."""

    index: int
    token_ids: list[int]
    params: SamplingParams
    abort_at: int | None = None


class Outcome(NamedTuple):
    tokens: list[int]
    reason: FinishReason | None
    text: str | None
    logprobs: list[dict[int, Any]] | None


class Run(NamedTuple):
    """What became of each request, and what its outputs said on the way, one by one."""

    outcomes: dict[int, Outcome]
    pieces: dict[int, list[Outcome]]

    @property
    def streamed(self) -> dict[int, Outcome]:
        """All outputs of a request together."""
        return {index: _joined(each) for index, each in self.pieces.items()}


def config_of(**fields: Any) -> EngineConfig:
    defaults = {"max_num_seqs": 5, "max_model_len": 200, "device": "null"}
    return EngineConfig(**defaults | {"num_accepted": (_WIDTH,)} | fields)


def variants(**fields: Any) -> list[EngineConfig]:
    """Every representation, delivery and detokenizer that go together, with ``fields``."""

    def all_of() -> Iterator[EngineConfig]:
        for representation, delivery, detokenizer in product(
            REPRESENTATIONS.names(), DELIVERIES.names(), DETOKENIZERS.names()
        ):
            config = config_of(
                representation=representation,
                delivery=delivery,
                **{"detokenizer": detokenizer} | fields,
            )
            has_columns = REPRESENTATIONS.load(representation).columnar
            if (has_columns or delivery != "columnar") and not delivery_contradiction(config):
                yield config

    return list(dict.fromkeys(all_of()))


def expected(asked: Asked, library: Tokenizer | None, eos_token_id: int) -> Outcome:
    """What must come of a request that nobody aborts, token by token."""
    params = asked.params
    stops = {*params.stop_token_ids, *([] if params.ignore_eos else [eos_token_id])}
    shown = ""
    for count in range(1, len(asked.token_ids) + 1):
        tokens = asked.token_ids[:count]
        reason = None
        if tokens[-1] in stops and count > params.min_tokens:
            reason = FinishReason.STOP
        elif count >= params.max_tokens:
            reason = FinishReason.LENGTH
        if library is not None:
            without = reason is FinishReason.STOP and not params.include_stop_str_in_output
            text = library.decode(tokens[: count - without], skip_special_tokens=True)
            if reason is not None or not text.endswith("�"):
                cut = _cut(text, len(shown), params) if count > params.min_tokens else None
                if cut is not None:
                    return Outcome(tokens, FinishReason.STOP, text[:cut], None)
                shown = text
        if reason is not None:
            return Outcome(tokens, reason, None if library is None else shown, None)
    raise AssertionError("the tokens do not last")


def _cut(text: str, shown: int, params: SamplingParams) -> int | None:
    for end in range(shown + 1, len(text) + 1):
        for each in params.stop:
            if text[:end].endswith(each):
                return end if params.include_stop_str_in_output else end - len(each)
    return None


class Way:
    """A delivery alone: the table of rows, a token store, and an output processor."""

    def __init__(self, config: EngineConfig) -> None:
        delivery = load_delivery(config)
        self.table = RequestTable(config)
        self.tokens = delivery.token_store(config, self.table)
        self.processor = OutputProcessor(delivery.stages(config))
        self.representation = REPRESENTATIONS.load(config.representation)()

    def admit(self, request: Request) -> int:
        """Give a request a row, and the first time a slot: its number."""
        row = self.table.take(request, 0)
        if request.slot < 0:
            request.slot = request.request_index
            self.processor.add(request)
        self.table.slot[row] = request.slot
        self.tokens.admit(row, request)
        return row

    def preempt(self, row: int, request: Request) -> None:
        request.output_token_ids = self.tokens.token_ids(row, 0)
        self.tokens.retire(row)
        self.table.give_up(np.array([row], np.int32))

    def step(self, rows, sampled, valid=None, logprobs=None) -> Processed:
        table = self.table
        taken = self.tokens.append(rows, sampled, valid)
        processed = self.processor.process(
            StepTokens(
                table.slot[rows],
                table.request_index[rows],
                taken.num_tokens,
                taken.finished,
                taken.reasons,
                taken.tokens,
                valid,
                logprobs,
            )
        )
        table.num_output_tokens[rows] += taken.num_tokens
        return processed

    def retire(self, row: int, num_tokens: int | None = None) -> list[int]:
        """A request's tokens, or the first of them; its row is somebody else's from now on."""
        tokens = np.asarray(self.tokens.retire(row), np.int32).tolist()
        self.table.give_up(np.array([row], np.int32))
        return tokens[:num_tokens]


class Loop:
    """A scheduler that decides by chance."""

    def __init__(self, config: EngineConfig, asked: Sequence[Asked], random: Random) -> None:
        self.asked = {each.index: each for each in asked}
        self.random = random
        self.way = Way(config)
        self.table = self.way.table
        self.waiting = [
            Request(each.index, np.arange(3, dtype=np.int32), each.params) for each in asked
        ]
        self.running: dict[int, Request] = {}
        self.streams = RequestStreams()
        self.has_streams = config.request_streams != "none"
        self.num_logprobs = parse_logprobs(config.logprobs).num_logprobs
        self.shape = load_logprobs(config.logprobs)
        self.pieces: dict[int, list[Outcome]] = defaultdict(list)
        self.chance_taken = random.choice([0.4, 1])
        self.outcomes: dict[int, Outcome] = {}

    def run(self) -> Run:
        for _ in range(2000):
            if not (self.waiting or self.running):
                return Run(self.outcomes, dict(self.pieces))
            for row, request in list(self.running.items()):
                chance = self.random.random()
                if chance < 0.08:
                    self._preempt(row, request)
            self._abort()
            while self.waiting and self.table.free_rows and self.random.random() < 0.9:
                request = self.waiting.pop(self.random.randrange(len(self.waiting)))
                if request.slot < 0:
                    self.streams.open(request.request_index)
                self.running[self.way.admit(request)] = request
            self.step()
        raise AssertionError("no end")

    def _preempt(self, row: int, request: Request) -> None:
        self.way.preempt(row, request)
        del self.running[row]
        self.waiting.append(request)

    def _abort(self) -> None:
        for row, request in list(self.running.items()):
            abort_at = self.asked[request.request_index].abort_at
            if abort_at is not None and self.table.num_output_tokens[row] >= abort_at:
                self.way.processor.remove(request.slot)
                self._retire(row, FinishReason.ABORT, EndedOutput(None, None, None))
        for request in list(self.waiting):
            abort_at = self.asked[request.request_index].abort_at
            if abort_at is not None and len(request.output_token_ids) >= abort_at:
                self.waiting.remove(request)
                if request.slot >= 0:
                    self.way.processor.remove(request.slot)
                tokens = request.output_token_ids.tolist()
                left = EndedOutput(None, None, None)
                self._end(request.request_index, tokens, FinishReason.ABORT, left)

    def step(self) -> None:
        rows = self.random.sample(list(self.running), self.random.randint(0, len(self.running)))
        stale = [row for row in self.table.free_rows if self.random.random() < 0.3]
        order = self.random.sample(rows + stale, len(rows + stale))
        width = self.random.choice([1, _WIDTH])
        host = np.full((len(order), width), PLACEHOLDER_TOKEN_ID, np.int32)
        for nth, row in enumerate(order):
            tokens = [0] * self.random.randint(0, width)
            if row in self.running:
                done = int(self.table.num_output_tokens[row])
                script = self.asked[self.running[row].request_index].token_ids
                tokens = script[done : done + self.random.randint(0, width)]
            host[nth, : len(tokens)] = tokens
        counts = (host != PLACEHOLDER_TOKEN_ID).sum(axis=1).astype(np.int32)
        num_tokens = None if width == 1 and counts.all() else counts
        valid = np.array([row in self.running for row in order], np.bool_)
        self._process(order, host, num_tokens, None if valid.all() else valid)

    def _process(self, order, host, num_tokens, valid) -> None:
        rows = np.array([row for row in order if row in self.running], np.int32)
        sampled = self.way.representation.from_device(host, num_tokens)
        logprobs = None
        if self.shape is not None:
            logprobs = self.shape.from_device(self._drawn(order, host), num_tokens)
        delivered = self.way.step(rows, sampled, valid, logprobs)
        with_tokens = rows[delivered.num_tokens > 0].tolist()
        indices = [self.running[row].request_index for row in with_tokens]
        if delivered.outputs:
            assert [output.request_index for output in delivered.outputs] == indices
        for index, output in zip(indices, delivered.outputs, strict=False):
            if not self.has_streams:
                self.pieces[index].append(_piece(output))
        if self.has_streams:
            self.streams.put(delivered.outputs)
        for row in self.running if self.has_streams else ():
            if self.random.random() < self.chance_taken:
                self._take(self.running[row].request_index)
        assert (np.diff(delivered.finished) > 0).all(), "ended in the order of their rows"
        left = delivered.ended or [EndedOutput(None, None, None)] * len(delivered.finished)
        ended = zip(delivered.finished, delivered.reasons, left, strict=True)
        for position, reason, each in ended:
            self._retire(int(rows[position]), FinishReason(reason), each)

    def _drawn(self, order, host) -> DeviceLogprobs:
        """Values that name the request and the position they are of."""
        shape = (*host.shape, self.num_logprobs + 1)
        token_ids = np.zeros(shape, np.int32)
        logprobs = np.zeros(shape, np.float32)
        for nth, row in enumerate(order):
            if row in self.running:
                done = int(self.table.num_output_tokens[row])
                index = self.running[row].request_index
                for column in range(host.shape[1]):
                    own = 100 * index + done + column
                    token_ids[nth, column] = 10 * own + np.arange(shape[2])
                    logprobs[nth, column] = -own - np.arange(shape[2]) / 16
        return DeviceLogprobs(token_ids, logprobs, token_ids[:, :, 0] + 1)

    def _take(self, index: int) -> None:
        output = self.streams[index].get_nowait()
        if output is not None:
            self.pieces[index].append(_piece(output))

    def _retire(self, row: int, reason: FinishReason, left: EndedOutput) -> None:
        index = self.running.pop(row).request_index
        self._end(index, self.way.retire(row, left.num_tokens), reason, left)

    def _end(self, index: int, tokens: list[int], reason: FinishReason, left: EndedOutput) -> None:
        if self.has_streams and tokens:
            self._take(index)
            assert self.streams[index].get_nowait() is None
        text = left.text.decode(errors="replace") if isinstance(left.text, bytes) else left.text
        logprobs = None if left.logprobs is None else list(left.logprobs)
        self.outcomes[index] = Outcome(tokens, reason, text, logprobs)


def _piece(output: Any) -> Outcome:
    (completion,) = output.outputs
    own = completion.token_ids
    assert type(own) in (int, list)
    assert output.finished == (completion.finish_reason is not None)
    return Outcome(
        [own] if isinstance(own, int) else list(own),
        completion.finish_reason,
        getattr(completion, "text", ""),
        list(getattr(completion, "logprobs", None) or ()),
    )


def _joined(pieces: list[Outcome]) -> Outcome:
    assert all(piece.reason is None for piece in pieces[:-1])
    return Outcome(
        [token for piece in pieces for token in piece.tokens],
        pieces[-1].reason,
        "".join(piece.text or "" for piece in pieces),
        [each for piece in pieces for each in piece.logprobs or ()],
    )


def drive(config: EngineConfig, asked: Sequence[Asked], seed: int) -> Run:
    """Run the requests to their ends."""
    return Loop(config, asked, Random(seed)).run()

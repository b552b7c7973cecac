"""The whole batch at once: tokens as columns, no object until somebody asks for one."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.builtin.delivery import Delivered, TokensOnly, stop_token_ids
from engines.builtin.delivery.outputs import CompletionOutput, RequestOutput
from engines.builtin.device.choice import eos_token_ids
from engines.builtin.registries import REPRESENTATIONS
from engines.builtin.representations import Representation
from engines.builtin.request_table import Request, RequestTable
from engines.protocol import BoolArray, EngineConfig, FinishReason, Int32Array

_NO_STOP_TOKEN = -1


class Columnar(TokensOnly):
    """Output tokens in one matrix, int32 ``[max_num_seqs, max_model_len]``."""

    needs_columns = True

    def __init__(
        self,
        config: EngineConfig,
        table: RequestTable,
        completion: type[CompletionOutput] = CompletionOutput,
    ) -> None:
        self._representation: Representation = REPRESENTATIONS.load(config.representation)()
        self._table = table
        self._tokens = np.zeros((config.max_num_seqs, config.max_model_len), np.int32)
        self._prompts: list[Int32Array | None] = [None] * config.max_num_seqs
        self._stop_token_ids = np.full((config.max_num_seqs, 0), _NO_STOP_TOKEN, np.int32)
        self._eos_token_ids = eos_token_ids(config)
        self._completion = completion
        self.min_tokens = np.zeros(config.max_num_seqs, np.int32)

    def admit(self, row: int, request: Request) -> None:
        """Note the stop tokens, widening their matrix where a request has more than any before."""
        self._prompts[row] = request.prompt_token_ids
        self.min_tokens[row] = request.params.min_tokens
        stops = stop_token_ids(request.params, self._eos_token_ids)
        if (missing := len(stops) - self._stop_token_ids.shape[1]) > 0:
            padding = ((0, 0), (0, missing))
            self._stop_token_ids = np.pad(
                self._stop_token_ids, padding, constant_values=_NO_STOP_TOKEN
            )
        self._stop_token_ids[row] = _NO_STOP_TOKEN
        self._stop_token_ids[row, : len(stops)] = stops
        if request.suspended is not None:
            self._tokens[row, : len(request.suspended)] = request.suspended

    def process(
        self, rows: Int32Array, sampled: Any, valid: BoolArray | None, logprobs: Any = None
    ) -> Delivered:
        """Find stops and lengths for all rows at once."""
        values, num_sampled = self._representation.columns(sampled)
        if valid is not None:
            values, num_sampled = values[np.repeat(valid, num_sampled)], num_sampled[valid]
        before = self._table.num_output_tokens[rows]
        room = self._table.max_tokens[rows] - before
        num_tokens = np.minimum(num_sampled, room)
        reasons = np.full(len(rows), FinishReason.LENGTH, np.int8)
        ended = num_sampled >= room
        if self._stop_token_ids.shape[1]:
            until_stop = self._tokens_until_stop(rows, values, num_sampled, before)
            stopped = until_stop <= num_tokens
            num_tokens = np.where(stopped, until_stop, num_tokens)
            reasons[stopped] = FinishReason.STOP
            ended |= stopped
        self._store(rows, values, num_sampled, num_tokens, before)
        finished = np.flatnonzero(ended).astype(np.int32)
        return Delivered(num_sampled, num_tokens, [], finished, reasons[finished])

    def _tokens_until_stop(
        self, rows: Int32Array, values: Int32Array, num_sampled: Int32Array, before: Int32Array
    ) -> Int32Array:
        """Tokens up to and with each row's first stop token; more than it sampled where none is."""
        owner = np.repeat(np.arange(len(rows)), num_sampled)
        nth = nth_in_row(num_sampled)
        hit = (values[:, None] == self._stop_token_ids[rows[owner]]).any(axis=1)
        hit &= (before + 1 - self.min_tokens[rows])[owner] + nth > 0
        first = num_sampled + 1
        np.minimum.at(first, owner[hit], (nth[hit] + 1).astype(np.int32))
        return first

    def _store(
        self,
        rows: Int32Array,
        values: Int32Array,
        num_sampled: Int32Array,
        num_tokens: Int32Array,
        before: Int32Array,
    ) -> None:
        if len(values) == len(rows) and num_tokens.all():
            self._tokens[rows, before] = values
            return
        nth = nth_in_row(num_sampled)
        kept = nth < np.repeat(num_tokens, num_sampled)
        owner = np.repeat(rows, num_sampled)[kept]
        self._tokens[owner, (np.repeat(before, num_sampled) + nth)[kept]] = values[kept]

    def delivered(self, rows: Int32Array, num_tokens: Int32Array) -> Int32Array:
        """The tokens that `process` has just given to ``rows``, int32 ``[num_tokens.sum()]``."""
        places: NDArray[np.integer[Any]] = self._table.num_output_tokens[rows]
        if not (num_tokens == 1).all():
            places = np.repeat(places, num_tokens) + nth_in_row(num_tokens)
            rows = np.repeat(rows, num_tokens)
        tokens: Int32Array = self._tokens[rows, places]
        return tokens

    def first_tokens(self, row: int, count: int) -> Int32Array:
        """A row's first tokens, those of the step at hand included."""
        return self._tokens[row, :count]

    def token_ids(self, row: int, start: int) -> Int32Array:
        """Copied from the row."""
        return self._tokens[row, start : self._table.num_output_tokens[row]].copy()

    def suspend(self, row: int) -> Int32Array:
        """A copy of the row: the next owner writes over it."""
        self._prompts[row] = None
        return self.token_ids(row, 0)

    def retire(self, row: int) -> Int32Array:
        """A copy, as of a row that is suspended."""
        return self.suspend(row)

    def request_output(self, row: int) -> RequestOutput:
        """Made from the row's tokens so far."""
        prompt = self._prompts[row]
        assert prompt is not None
        completion = self._completion(0, self.token_ids(row, 0).tolist(), None)
        return RequestOutput(int(self._table.request_index[row]), prompt, [completion], False)


def nth_in_row(counts: Int32Array) -> NDArray[np.int64]:
    """0, 1, … for each of ``counts[i]`` items of row ``i``, row after row."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)

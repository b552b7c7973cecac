"""One matrix for all requests; a step's tokens are taken in for the whole batch at once."""

import numpy as np

from engines.builtin.columns import nth_in_row
from engines.builtin.device.choice import eos_token_ids
from engines.builtin.registries import REPRESENTATIONS
from engines.builtin.representations import Representation
from engines.builtin.request_table import Request, RequestTable
from engines.builtin.token_store import Taken, stop_token_ids
from engines.protocol import BoolArray, EngineConfig, FinishReason, Int32Array

_NO_STOP_TOKEN = -1


class TokenMatrix:
    """Output tokens int32 ``[max_num_seqs, max_model_len]``; ``Taken.tokens`` is a column of all,
    int32 ``[num_tokens.sum()]``, row after row.
    """

    def __init__(self, config: EngineConfig, table: RequestTable) -> None:
        self._representation: Representation = REPRESENTATIONS.load(config.representation)()
        self._table = table
        self._tokens = np.zeros((config.max_num_seqs, config.max_model_len), np.int32)
        self._stop_token_ids = np.full((config.max_num_seqs, 0), _NO_STOP_TOKEN, np.int32)
        self._eos_token_ids = eos_token_ids(config)
        self._min_tokens = np.zeros(config.max_num_seqs, np.int32)

    def admit(self, row: int, request: Request) -> None:
        """Note the stop tokens, widening their matrix where a request has more than any before."""
        self._min_tokens[row] = request.params.min_tokens
        stops = stop_token_ids(request.params, self._eos_token_ids)
        if (missing := len(stops) - self._stop_token_ids.shape[1]) > 0:
            padding = ((0, 0), (0, missing))
            self._stop_token_ids = np.pad(
                self._stop_token_ids, padding, constant_values=_NO_STOP_TOKEN
            )
        self._stop_token_ids[row] = _NO_STOP_TOKEN
        self._stop_token_ids[row, : len(stops)] = stops
        self._tokens[row, : len(request.output_token_ids)] = request.output_token_ids

    def append(self, rows: Int32Array, sampled: object, valid: BoolArray | None) -> Taken:
        """Find stops and lengths for all rows at once."""
        values, num_sampled = self._representation.columns(sampled)
        if not self._representation.owns_memory:
            values = values.copy()  # who processes the outputs later would read the next step's
        num_dropped = 0
        if valid is not None:
            num_dropped = int(num_sampled[~valid].sum())
            values, num_sampled = values[np.repeat(valid, num_sampled)], num_sampled[valid]
        before = self._table.num_output_tokens.take(rows)
        room = self._table.max_tokens.take(rows) - before
        num_tokens = np.minimum(num_sampled, room)
        reasons = np.full(len(rows), FinishReason.LENGTH, np.int8)
        ended = num_sampled >= room
        if self._stop_token_ids.shape[1]:
            until_stop = self._tokens_until_stop(rows, values, num_sampled, before)
            stopped = until_stop <= num_tokens
            num_tokens = np.where(stopped, until_stop, num_tokens)
            reasons[stopped] = FinishReason.STOP
            ended |= stopped
        if len(values) == len(rows) and num_tokens.all():
            self._tokens[rows, before] = values
        else:
            nth = nth_in_row(num_sampled)
            kept = nth < np.repeat(num_tokens, num_sampled)
            owner = np.repeat(rows, num_sampled)[kept]
            places = (np.repeat(before, num_sampled) + nth)[kept]
            values = values[kept]
            self._tokens[owner, places] = values
        finished = np.flatnonzero(ended).astype(np.int32)
        return Taken(num_sampled, num_tokens, finished, reasons[finished], values, num_dropped)

    def _tokens_until_stop(
        self, rows: Int32Array, values: Int32Array, num_sampled: Int32Array, before: Int32Array
    ) -> Int32Array:
        """Tokens up to and with each row's first stop token; more than it sampled where none is."""
        owner = np.repeat(np.arange(len(rows)), num_sampled)
        nth = nth_in_row(num_sampled)
        hit = (values[:, None] == self._stop_token_ids[rows[owner]]).any(axis=1)
        hit &= (before + 1 - self._min_tokens[rows])[owner] + nth > 0
        first = num_sampled + 1
        np.minimum.at(first, owner[hit], (nth[hit] + 1).astype(np.int32))
        return first

    def token_ids(self, row: int, start: int) -> Int32Array:
        """Copied from the row."""
        return self._tokens[row, start : self._table.num_output_tokens[row]].copy()

    def retire(self, row: int) -> Int32Array:
        """A copy of the row: the next owner writes over it."""
        return self.token_ids(row, 0)

"""From a step of the scheduler's to the arrays of a forward pass; NumPy, on the host."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from engines.builtin.device import DeviceBatch
from engines.builtin.device.scripted_acceptance import ScriptedAcceptance
from engines.builtin.model.sampling import parse_sampling
from engines.builtin.worker import NewRequests
from engines.protocol import BoolArray, EngineConfig, Int32Array, Int64Array, Sampling

Array = np.ndarray[Any, np.dtype[Any]]


_NONE_OWN = np.empty(0, np.int64)

A = TypeVar("A")
B = TypeVar("B")


class Sampled(NamedTuple, Generic[A]):
    """What of a pass is sampled from, ``S`` tokens, for ``L`` requests; int64 each.

    ``places`` ``[S]``: tokens of the pass after which one is sampled; ``requests`` and
    ``positions`` ``[S]``: of which request, its how many-th output token; ``outputs`` ``[S]``:
    where it goes in ``[R, max_tokens]``, -1 where the draft before it was not accepted. ``kept``
    ``[L]``: of these the last that counts, for the rows ``kept_rows`` ``[L]``. ``own`` ``[3 S]``,
    bits of float64: temperature, top-k and top-p of each, empty where all are the engine's.
    """

    places: A
    requests: A
    positions: A
    outputs: A
    kept: A
    kept_rows: A
    own: A


class PassInputs(NamedTuple, Generic[A]):
    """A forward pass over ``T`` tokens of ``R`` requests, as NumPy arrays or as tensors.

    As in `ForwardBatch`: ``positions``, ``slot_mapping`` int64 ``[T]``; ``rows``, ``seq_lens``
    int32 ``[R]``; ``query_start`` int32 ``[R + 1]``; ``max_query_len``, ``max_seq_len``.
    ``token_ids`` int64 ``[T]``, but at ``last_places`` int64 the token that the row ``last_rows``
    int64 sampled last.
    """

    positions: A
    slot_mapping: A
    rows: A
    seq_lens: A
    query_start: A
    token_ids: A
    last_places: A
    last_rows: A
    sampled: Sampled[A]
    max_query_len: int
    max_seq_len: int

    def brought(self, bring: Callable[[Sequence[A]], Sequence[B]]) -> "PassInputs[B]":
        """The same of what ``bring`` makes of all arrays, in order."""
        first = [self.positions, self.slot_mapping, self.rows, self.seq_lens, self.query_start]
        rest = [self.token_ids, self.last_places, self.last_rows, *self.sampled]
        a, b, c, d, e, f, g, h, *sampled = bring(first + rest)
        return PassInputs(
            a, b, c, d, e, f, g, h, Sampled(*sampled), self.max_query_len, self.max_seq_len
        )


class Pass(NamedTuple):
    """``num_tokens``: see `engines.builtin.device.StepHandle`."""

    inputs: PassInputs[Array]
    num_tokens: Int32Array | None


class PassBuilder:
    """Keeps the prompts of the rows; drafts are the last token over again.

    Acceptance is drawn as for scripted tokens, not decided by the model: with a model's own it
    would depend on drafts that nobody has trained.
    """

    def __init__(self, config: EngineConfig) -> None:
        self._block_size = config.block_size
        self._width = max(config.num_accepted)
        self._acceptance = ScriptedAcceptance(config)
        self._prefill: list[Int32Array] = [np.empty(0, np.int32)] * config.max_num_seqs
        self._num_prefill = np.zeros(config.max_num_seqs, np.int64)
        self._engines = parse_sampling(config.sampling)
        self._sampling = np.zeros((config.max_num_seqs, len(Sampling._fields)))
        self._has_own = np.zeros(config.max_num_seqs, np.bool_)

    def admit(self, new: NewRequests) -> None:
        """Note the prompts of rows that are taken; before the step is built."""
        for row, token_ids in zip(new.rows, new.token_ids, strict=True):
            self._prefill[row] = token_ids
            self._num_prefill[row] = len(token_ids)
        self._has_own[new.rows] = False
        self._sampling[new.rows] = self._engines
        for row, own in zip(new.rows, new.sampling, strict=False):
            if own is not None:
                self._has_own[row] = True
                self._sampling[row] = own

    def num_tokens(self, batch: DeviceBatch) -> Int32Array | None:
        """See `engines.builtin.device.StepHandle`."""
        return self._acceptance.num_tokens(batch)

    def whole_decodes(self, batch: DeviceBatch) -> BoolArray:
        """Which rows verify as many drafts as a decode step has and sample as the engine does, bool
        ``[num_reqs]``.
        """
        assert batch.scheduled is not None
        rows = batch.scheduled.rows
        computed = batch.context - batch.num_scheduled
        decoding = computed >= self._num_prefill[rows]
        whole: BoolArray = decoding & (batch.num_scheduled == self._width) & ~self._has_own[rows]
        return whole

    def build(self, batch: DeviceBatch) -> Pass:
        """The arrays of a step, all new ones."""
        scheduled, block_table = batch.scheduled, batch.block_table
        assert scheduled is not None
        assert block_table is not None
        slots = scheduled.rows.astype(np.int64)
        counts = batch.num_scheduled.astype(np.int64)
        query_start = np.zeros(len(slots) + 1, np.int64)
        np.cumsum(counts, out=query_start[1:])
        computed = batch.context - counts
        owner = np.repeat(np.arange(len(slots)), counts)
        positions = np.arange(query_start[-1]) - query_start[:-1][owner] + computed[owner]
        blocks = block_table[slots[owner], positions // self._block_size].astype(np.int64)
        decoding = computed >= self._num_prefill[slots]
        last_places = np.flatnonzero(decoding[owner])
        num_tokens = self._acceptance.num_tokens(batch)
        return Pass(
            PassInputs(
                positions,
                blocks * self._block_size + positions % self._block_size,
                scheduled.rows,
                batch.context.astype(np.int32),
                query_start.astype(np.int32),
                self._token_ids(slots, computed, query_start, np.flatnonzero(~decoding)),
                last_places,
                slots[owner[last_places]],
                self._sampled(batch, decoding, query_start, num_tokens),
                int(counts.max()),
                int(batch.context.max()),
            ),
            num_tokens,
        )

    def _token_ids(
        self, slots: Int64Array, computed: Int64Array, query_start: Int64Array, rows: Int64Array
    ) -> Int64Array:
        """Prompt tokens of ``rows``, zeros for all others."""
        token_ids = np.zeros(query_start[-1], np.int64)
        for row in rows.tolist():
            start, end = query_start[row], query_start[row + 1]
            first = computed[row]
            token_ids[start:end] = self._prefill[slots[row]][first : first + end - start]
        return token_ids

    def _sampled(
        self,
        batch: DeviceBatch,
        decoding: BoolArray,
        query_start: Int64Array,
        num_tokens: Int32Array | None,
    ) -> Sampled[Array]:
        """Of each row its last places, as many as it verifies."""
        assert batch.scheduled is not None
        num_reqs = len(decoding)
        accepted = np.ones(num_reqs, np.int64) if num_tokens is None else num_tokens
        verified = np.where(decoding, batch.num_scheduled, 1)
        if batch.samples is not None:
            verified = verified * batch.samples
        owner = np.repeat(np.arange(num_reqs), verified)
        starts = np.cumsum(verified) - verified
        column = np.arange(len(owner)) - starts[owner]
        kept = np.flatnonzero(verified > 0)
        requests, own = batch.request_index, _NONE_OWN
        rows = batch.scheduled.rows
        if self._has_own[rows].any():
            *_, seeds = self._sampling[rows].T.astype(np.int64)
            requests = np.where(seeds < 0, requests, -2 - seeds)  # no request has such a number
            own = self._sampling[rows, :3][owner].ravel().view(np.int64)
        return Sampled(
            query_start[1:][owner] - verified[owner] + column,
            requests[owner],
            batch.position[owner] + column,
            np.where(column < accepted[owner], owner * self._width + column, -1),
            starts[kept] + accepted[kept] - 1,
            rows[kept].astype(np.int64),
            own,
        )

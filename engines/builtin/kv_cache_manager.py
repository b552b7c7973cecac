"""Which blocks of the KV cache each row holds; prefixes shared where that is switched on."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from engines.builtin.block_pool import BlockPool, blocks_for_longest
from engines.builtin.prefix_cache import PrefixCache, hash_blocks_of
from engines.builtin.request_table import Request, RequestTable
from engines.protocol import EngineConfig, Int32Array

_NO_BLOCKS = np.empty(0, np.int32)

ReadTokenIds = Callable[[int, int], Int32Array]
"""``(row, start) ->`` a running request's output tokens from ``start`` on, int32."""


class NewBlocks(NamedTuple):
    """Blocks given out in a step, all int32 ``[num_new_blocks]``: whose, where in the row's table,
    and which.
    """

    rows: Int32Array
    positions: Int32Array
    ids: Int32Array


_NO_NEW_BLOCKS = NewBlocks(_NO_BLOCKS, _NO_BLOCKS, _NO_BLOCKS)


class KVCacheManager:
    """Named as in vLLM, and its verbs; a step's blocks are given out for all rows at once."""

    def __init__(
        self, config: EngineConfig, num_blocks: int, table: RequestTable, token_ids: ReadTokenIds
    ) -> None:
        self._block_size = config.block_size
        self._table = table
        self._token_ids = token_ids
        self.pool = BlockPool(num_blocks)
        self.prefix_cache: PrefixCache | None = None
        self._allocate = self.pool.allocate
        if config.enable_prefix_caching:
            self.prefix_cache = PrefixCache(self.pool)
            self._allocate = self.prefix_cache.allocate
        longest = blocks_for_longest(config.max_model_len, config)
        self.block_table = np.zeros((config.max_num_seqs, longest), np.int32)
        self.num_blocks = np.zeros(config.max_num_seqs, np.int32)
        self._num_cached_blocks = np.zeros(config.max_num_seqs, np.int32)
        self._shared: list[tuple[int, int]] = []

    def num_blocks_for(self, num_tokens: int) -> int:
        """Blocks that hold so many tokens."""
        return -(-num_tokens // self._block_size)

    def num_short(self, rows: Int32Array, num_scheduled: Int32Array) -> int:
        """Blocks that ``rows`` lack to compute ``num_scheduled`` int32 tokens each."""
        size = self._block_size
        end = self._table.num_computed_tokens.take(rows) + num_scheduled
        short = (end + (size - 1)) // size - self.num_blocks.take(rows)
        return int(np.maximum(short, 0).sum())

    def get_computed_blocks(self, request: Request) -> Int32Array:
        """The blocks of the longest prefix that is cached, int32.

        At least one token is left to compute: without it there would be nothing to sample from.
        """
        if self.prefix_cache is None:
            return _NO_BLOCKS
        num_tokens, size = request.num_tokens, self._block_size
        outputs = request.output_token_ids
        hash_blocks_of(request, num_tokens // size, size, lambda start: outputs[start:])
        return self.prefix_cache.find(request.block_hashes[: (num_tokens - 1) // size])

    def can_start(self, prefix: Int32Array, num_tokens: int, reserved: int) -> bool:
        """Whether blocks for ``num_tokens`` are free beside ``prefix`` and ``reserved`` others."""
        num_new = self.num_blocks_for(num_tokens)
        if len(prefix):
            # What nobody holds of it is free as yet, and will not be then.
            num_new -= int((self.pool.ref_cnt[prefix] > 0).sum())
        return num_new + reserved <= self.pool.num_free

    def start(self, row: int, prefix: Int32Array, num_tokens: int) -> int:
        """Let a request that has taken a row begin with ``prefix``.

        The blocks for the rest of its first ``num_tokens`` it gets with all others, and their
        number is answered; where prefixes are cached it gets them now, since whoever comes next
        in the same step may share them.
        """
        self.num_blocks[row] = len(prefix)
        if self.prefix_cache is None:
            return self.num_blocks_for(num_tokens)
        request = self._table.requests[row]
        assert request is not None
        self.prefix_cache.num_queries += request.num_tokens
        self.prefix_cache.num_hits += len(prefix) * self._block_size
        self.pool.touch(prefix)
        new = self._allocate(self.num_blocks_for(num_tokens) - len(prefix))
        blocks = np.concatenate([prefix, new])
        self.block_table[row, : len(blocks)] = blocks
        self.num_blocks[row] = len(blocks)
        self._num_cached_blocks[row] = len(prefix)
        self._shared.append((row, len(blocks)))
        self._cache_full_blocks(row, num_tokens // self._block_size)
        return 0

    def allocate_slots(self, rows: Int32Array) -> NewBlocks:
        """Blocks for the tokens that are counted as computed in each row."""
        size = self._block_size
        held = self.num_blocks.take(rows)
        short = (self._table.num_computed_tokens.take(rows) + (size - 1)) // size - held
        growing = np.flatnonzero(short > 0)
        new = _NO_NEW_BLOCKS
        if len(growing):
            counts = short[growing]
            ends = np.cumsum(counts)
            blocks = self._allocate(int(ends[-1]))
            within = np.arange(len(blocks)) - np.repeat(ends - counts, counts)
            positions = (within + np.repeat(held[growing], counts)).astype(np.int32)
            new = NewBlocks(np.repeat(rows[growing], counts), positions, blocks)
            self.block_table[new.rows, positions] = blocks
            self.num_blocks[rows[growing]] += counts
        return new if self.prefix_cache is None else self._with_prefixes(rows, new)

    def free(self, rows: Int32Array) -> None:
        """Take the blocks of rows back, a row's last first: of a prefix the end is forgotten
        before its beginning.
        """
        backwards = np.arange(self.block_table.shape[1] - 1, -1, -1, dtype=np.int32)
        held = backwards < self.num_blocks[rows][:, None]
        self.pool.free(self.block_table[rows][:, ::-1][held])
        self.num_blocks[rows] = self._num_cached_blocks[rows] = 0

    def _with_prefixes(self, rows: Int32Array, new: NewBlocks) -> NewBlocks:
        """Cache what is full after this step; the new blocks with those that `share` gave out."""
        table = self._table
        known = table.num_prompt_tokens[rows] + table.num_output_tokens[rows]
        full = np.minimum(table.num_computed_tokens[rows], known) // self._block_size
        growing = full > self._num_cached_blocks[rows]
        for row, count in zip(rows[growing].tolist(), full[growing].tolist(), strict=True):
            self._cache_full_blocks(row, count)
        shared, self._shared = self._shared, []
        parts = [
            NewBlocks(
                np.full(count, row, np.int32),
                np.arange(count, dtype=np.int32),
                self.block_table[row, :count],
            )
            for row, count in shared
        ]
        return NewBlocks(*map(np.concatenate, zip(*parts, new, strict=True)))

    def _cache_full_blocks(self, row: int, count: int) -> None:
        """Make the first ``count`` blocks of a row findable."""
        assert self.prefix_cache is not None
        request, first = self._table.requests[row], int(self._num_cached_blocks[row])
        assert request is not None
        hash_blocks_of(request, count, self._block_size, partial(self._token_ids, row))
        blocks = self.block_table[row, first:count]
        self.prefix_cache.cache_full_blocks(blocks, request.block_hashes[first:count])
        self._num_cached_blocks[row] = count

"""Continuous batching under a token budget: who computes how many tokens, and in which blocks."""

from collections import deque
from typing import NamedTuple

import numpy as np

from engines.builtin.block_pool import BlockPool
from engines.builtin.request_table import NewRequest, RequestTable
from engines.builtin.worker import SchedulerOutput
from engines.protocol import BoolArray, EngineConfig, Int32Array, Int64Array

_NO_BLOCKS = np.empty(0, np.int32)


class ScheduledStep(NamedTuple):
    """A step under way: what the runner was sent, and whose rows they were at that time.

    ``epochs`` int64 ``[num_reqs]``: the rows' epochs when the step was scheduled.
    """

    output: SchedulerOutput
    epochs: Int64Array


class Scheduler:
    """Running requests first, then waiting ones while rows, blocks and budget last, as in vLLM.

    A request is admitted only when the blocks of its longest possible life can be promised, so a
    running one never waits for a block.
    """

    def __init__(self, config: EngineConfig, num_blocks: int) -> None:
        self._config = config
        self._tokens_per_step = max(config.num_accepted)
        self.table = RequestTable(config)
        self.pool = BlockPool(num_blocks)
        self.waiting: deque[NewRequest] = deque()
        self._running = np.empty(0, np.int32)
        self._num_prefilling = 0
        blocks = self._blocks(config.max_model_len + 2 * self._tokens_per_step)
        self._block_table = np.zeros((config.max_num_seqs, blocks), np.int32)
        self._num_blocks = np.zeros(config.max_num_seqs, np.int32)
        self._num_promised = np.zeros(config.max_num_seqs, np.int32)
        self._promised = 0

    def _blocks(self, num_tokens: int) -> int:
        return -(-num_tokens // self._config.block_size)

    def _blocks_to_promise(self, request: NewRequest) -> int:
        # Steps under way past the last token still write: at most two of them.
        longest = len(request.prompt_token_ids) + request.max_tokens + 2 * self._tokens_per_step
        return self._blocks(longest)

    def add(self, request: NewRequest) -> None:
        """Queue a request. Raises ValueError where it could never be served."""
        length = len(request.prompt_token_ids) + request.max_tokens
        if not len(request.prompt_token_ids) or request.max_tokens < 1:
            raise ValueError(f"request {request.request_index}: needs a prompt and max_tokens >= 1")
        if length > self._config.max_model_len:
            raise ValueError(
                f"request {request.request_index}: prompt and output make {length} tokens, "
                f"max_model_len is {self._config.max_model_len}"
            )
        if (needed := self._blocks_to_promise(request)) > self.pool.num_blocks:
            raise ValueError(
                f"request {request.request_index}: needs {needed} KV blocks, the pool has "
                f"{self.pool.num_blocks}"
            )
        self.waiting.append(request)

    @property
    def num_running(self) -> int:
        """Requests that hold a row."""
        return len(self._running)

    def schedule(self) -> tuple[ScheduledStep | None, list[tuple[int, NewRequest]]]:
        """The next step, or None where no row can compute; and the requests admitted with it."""
        table = self.table
        rows = self._running
        # A request whose last tokens are under way by length has nothing more to compute.
        if table.num_under_way.any():
            least = table.num_output_tokens[rows] + table.num_under_way[rows]
            rows = rows[least < table.max_tokens[rows]]
        num_scheduled = self._num_scheduled(rows)
        budget = self._config.max_num_batched_tokens - int(num_scheduled.sum())
        if budget < 0:
            rows, num_scheduled = self._fit(rows, num_scheduled)
        admitted = self._admit(budget) if self.waiting and budget > 0 else []
        if admitted:
            new = np.array([row for row, _, _ in admitted], np.int32)
            self._running = np.concatenate([self._running, new])
            self._num_prefilling += len(new)
            rows = np.concatenate([rows, new])
            chunks = np.array([chunk for _, _, chunk in admitted], np.int32)
            num_scheduled = np.concatenate([num_scheduled, chunks])
        if not len(rows):
            return None, []
        samples = self._advance(rows, num_scheduled)
        sampling = rows if samples is None else rows[samples]
        table.num_under_way[sampling] += 1
        new_requests = [(row, request) for row, request, _ in admitted]
        output = SchedulerOutput(
            rows,
            num_scheduled,
            samples,
            [row for row, _ in new_requests],
            [request.request_index for _, request in new_requests],
            [request.prompt_token_ids for _, request in new_requests],
            *self._allot(rows),
        )
        return ScheduledStep(output, table.epoch[rows]), new_requests

    def _num_scheduled(self, rows: Int32Array) -> Int32Array:
        decode = np.full(len(rows), self._tokens_per_step, np.int32)
        if not self._num_prefilling:
            return decode
        table = self.table
        prompt_left = table.num_prompt_tokens[rows] - table.num_computed_tokens[rows]
        return np.where(prompt_left > 0, prompt_left, decode).astype(np.int32)

    def _fit(self, rows: Int32Array, num_scheduled: Int32Array) -> tuple[Int32Array, Int32Array]:
        """The rows the budget lasts for, in order; a prompt can be cut, a decode step cannot."""
        table = self.table
        left = self._config.max_num_batched_tokens - (np.cumsum(num_scheduled) - num_scheduled)
        fitted = np.minimum(num_scheduled, left)
        decoding = table.num_computed_tokens[rows] >= table.num_prompt_tokens[rows]
        kept = (fitted > 0) & ((fitted == num_scheduled) | ~decoding)
        return rows[kept], fitted[kept].astype(np.int32)

    def _admit(self, budget: int) -> list[tuple[int, NewRequest, int]]:
        admitted = []
        table = self.table
        while self.waiting and budget > 0 and table.free_rows:
            needed = self._blocks_to_promise(self.waiting[0])
            if needed > self.pool.num_free - self._promised:
                break
            request = self.waiting.popleft()
            row = table.take(request)
            self._promised += needed
            self._num_promised[row] = needed
            self._num_blocks[row] = 0
            chunk = min(len(request.prompt_token_ids), budget)
            budget -= chunk
            admitted.append((row, request, chunk))
        return admitted

    def _advance(self, rows: Int32Array, num_scheduled: Int32Array) -> BoolArray | None:
        """Count the tokens as computed; bool mask of the rows that sample, or None for all."""
        table = self.table
        if not self._num_prefilling:
            table.num_computed_tokens[rows] += num_scheduled
            return None
        prefilling = table.num_computed_tokens[rows] < table.num_prompt_tokens[rows]
        table.num_computed_tokens[rows] += num_scheduled
        samples = table.num_computed_tokens[rows] >= table.num_prompt_tokens[rows]
        self._num_prefilling -= int((prefilling & samples).sum())
        return None if samples.all() else samples

    def _allot(self, rows: Int32Array) -> tuple[Int32Array, Int32Array, Int32Array]:
        """Blocks for the tokens now counted: their rows, places in the row's table, and ids."""
        size = self._config.block_size
        held = self._num_blocks[rows]
        short = (self.table.num_computed_tokens[rows] + (size - 1)) // size - held
        growing = np.flatnonzero(short > 0)
        if not len(growing):
            return _NO_BLOCKS, _NO_BLOCKS, _NO_BLOCKS
        counts = short[growing]
        ends = np.cumsum(counts)
        blocks = self.pool.allocate(int(ends[-1]))
        self._promised -= len(blocks)
        block_rows = np.repeat(rows[growing], counts)
        within = np.arange(len(blocks)) - np.repeat(ends - counts, counts)
        positions = (within + np.repeat(held[growing], counts)).astype(np.int32)
        self._block_table[block_rows, positions] = blocks
        self._num_blocks[rows[growing]] += counts
        self._num_promised[rows[growing]] -= counts
        return block_rows, positions, blocks

    def update(self, rows: Int32Array, num_tokens: Int32Array) -> None:
        """Take in what a step brought: ``num_tokens`` int32 each of ``rows`` sampled, 0 or more."""
        table = self.table
        table.num_under_way[rows] -= num_tokens > 0
        if self._tokens_per_step > 1:
            decoded = (table.num_output_tokens[rows] > 0) & (num_tokens > 0)
            table.num_computed_tokens[rows] -= decoded * (self._tokens_per_step - num_tokens)
        table.num_output_tokens[rows] += num_tokens

    def finish(self, rows: Int32Array) -> None:
        """Give back the rows and blocks of requests that have ended."""
        held = self._num_blocks[rows]
        tables = self._block_table[rows]
        self.pool.free(tables[np.arange(tables.shape[1], dtype=np.int32) < held[:, None]])
        self._promised -= int(self._num_promised[rows].sum())
        table = self.table
        prompts_open = table.num_computed_tokens[rows] < table.num_prompt_tokens[rows]
        self._num_prefilling -= int(prompts_open.sum())
        gone = np.zeros(self._config.max_num_seqs, np.bool_)
        gone[rows] = True
        self._running = self._running[~gone[self._running]]
        table.give_up(rows)

    def abort_waiting(self, request_index: int) -> bool:
        """Take a request out of the queue; whether it was there."""
        kept = [request for request in self.waiting if request.request_index != request_index]
        found = len(kept) < len(self.waiting)
        if found:
            self.waiting = deque(kept)
        return found

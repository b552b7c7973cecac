"""Continuous batching under a token budget: who computes how many tokens."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from engines.builtin.block_pool import blocks_for_longest
from engines.builtin.kv_cache_manager import KVCacheManager, ReadTokenIds
from engines.builtin.registries import SCHEDULING_POLICIES
from engines.builtin.request_table import Request, RequestTable
from engines.builtin.waiting import RequestQueue
from engines.builtin.worker import NOBODY, NewRequests, SchedulerOutput
from engines.protocol import BoolArray, EngineConfig, Int32Array, Int64Array


class ScheduledStep(NamedTuple):
    """A step under way: what the runner was sent, and whose rows they were at that time.

    ``epochs`` int64 ``[num_reqs]``: the rows' epochs when the step was scheduled. ``decodes`` bool
    ``[num_reqs]``: rows whose drafts are verified; None where a step yields one token a row.
    """

    output: SchedulerOutput
    epochs: Int64Array
    decodes: BoolArray | None


class Admitted(NamedTuple):
    """A request that got a row, and how its first step begins; both in tokens."""

    row: int
    request: Request
    num_computed: int
    chunk: int


class Scheduled(NamedTuple):
    """What scheduling came to: a step, or None where no row can compute; who was admitted to it,
    and who had to give up a row for it.
    """

    step: ScheduledStep | None
    admitted: Sequence[Admitted]
    preempted: Sequence[tuple[int, Request]]


class Scheduler:
    """Running requests first, then waiting ones while rows, blocks and budget last, as in vLLM.

    Where blocks run out a running request is preempted: it gives up its row and blocks, waits
    again and computes its tokens anew.
    """

    needs_rehearsal = False
    """Whether it must see the same requests served once before it is measured."""

    def __init__(
        self, config: EngineConfig, num_blocks: int, table: RequestTable, token_ids: ReadTokenIds
    ) -> None:
        self._config = config
        self._tokens_per_step = max(config.num_accepted)
        self._most_steps = config.num_scheduler_steps
        self._most_blocks_per_decode = 1 + (self._tokens_per_step - 1) // config.block_size
        self.table = table
        self.kv_cache = KVCacheManager(config, num_blocks, table, token_ids)
        self.waiting: RequestQueue = SCHEDULING_POLICIES.load(config.scheduling_policy)()
        self.num_preemptions = 0
        self._num_arrived = 0
        self._running = np.empty(0, np.int32)
        self.num_prefilling = 0  # running requests whose prompt is not computed yet

    def rehearse(self, serve: Callable[[], object]) -> None:
        """Have ``serve`` serve what will be served next, where anything is learnt from that."""

    def add(self, request: Request) -> None:
        """Queue a request. Raises ValueError where it could never be served."""
        prompt, max_tokens = len(request.prompt_token_ids), request.params.max_tokens
        if not prompt or max_tokens < 1:
            raise ValueError(f"request {request.request_index}: needs a prompt and max_tokens >= 1")
        if prompt + max_tokens > self._config.max_model_len:
            raise ValueError(
                f"request {request.request_index}: prompt and output make {prompt + max_tokens} "
                f"tokens, max_model_len is {self._config.max_model_len}"
            )
        needed = blocks_for_longest(prompt + max_tokens, self._config)
        held = self.kv_cache.pool.num_blocks
        if needed > held:
            raise ValueError(
                f"request {request.request_index}: needs {needed} KV blocks, the pool has {held}"
            )
        request.arrival = self._num_arrived
        self._num_arrived += 1
        self.waiting.add_request(request)

    @property
    def num_running(self) -> int:
        """Requests that hold a row."""
        return len(self._running)

    def stats(self) -> dict[str, int]:
        """What scheduling came to so far, with vLLM's names; cached prefixes in tokens."""
        cache = self.kv_cache.prefix_cache
        return {
            "num_preemptions": self.num_preemptions,
            "prefix_cache_queries": cache.num_queries if cache else 0,
            "prefix_cache_hits": cache.num_hits if cache else 0,
        }

    def schedule(self) -> Scheduled:
        """The next step."""
        preempted: tuple[tuple[int, Request], ...] = ()
        rows, num_scheduled = self._schedule_running()
        while self._lacks_blocks(rows, num_scheduled):
            preempted += (self._preempt(),)
            rows, num_scheduled = self._schedule_running()
        admitted: Sequence[Admitted] = ()
        if self.waiting and not preempted:
            admitted = self._admit(rows, num_scheduled)
            new = np.array([each.row for each in admitted], np.int32)
            chunks = np.array([each.chunk for each in admitted], np.int32)
            self._running = np.concatenate([self._running, new])
            self.num_prefilling += len(new)
            rows = np.concatenate([rows, new])
            num_scheduled = np.concatenate([num_scheduled, chunks])
        if not len(rows):
            return Scheduled(None, (), preempted)
        if self._most_steps > 1 and not self.num_prefilling:
            num_scheduled = self._look_ahead(rows)
        decodes = self._decodes(rows)
        samples = self._advance(rows, num_scheduled)
        sampling = rows if samples is None else rows[samples]
        under_way = self.table.num_under_way
        under_way[sampling] = under_way.take(sampling) + 1
        blocks = self.kv_cache.allocate_slots(rows)
        news = _new_requests(admitted) if admitted else NOBODY
        output = SchedulerOutput(rows, num_scheduled, samples, news, *blocks)
        step = ScheduledStep(output, self.table.epoch.take(rows), decodes)
        return Scheduled(step, admitted, preempted)

    def _schedule_running(self) -> tuple[Int32Array, Int32Array]:
        """Rows and how many tokens each computes, in the order of admission, within the budget."""
        table = self.table
        rows = self._running
        if table.num_under_way.any():
            rows = rows[~table.awaits_its_last(rows)]
        num_scheduled = np.full(len(rows), self._tokens_per_step, np.int32)
        if self.num_prefilling:
            left = table.num_prefill_tokens[rows] - table.num_computed_tokens[rows]
            num_scheduled = np.where(left > 0, left, num_scheduled).astype(np.int32)
        if num_scheduled.sum() > self._config.max_num_batched_tokens:
            return self._fit(rows, num_scheduled)
        return rows, num_scheduled

    def _fit(self, rows: Int32Array, num_scheduled: Int32Array) -> tuple[Int32Array, Int32Array]:
        """The rows the budget lasts for, in order; a prompt can be cut, a decode step cannot."""
        table = self.table
        left = self._config.max_num_batched_tokens - (np.cumsum(num_scheduled) - num_scheduled)
        fitted = np.minimum(num_scheduled, left)
        decoding = table.num_computed_tokens[rows] >= table.num_prefill_tokens[rows]
        kept = (fitted > 0) & ((fitted == num_scheduled) | ~decoding)
        return rows[kept], fitted[kept].astype(np.int32)

    def _lacks_blocks(self, rows: Int32Array, num_scheduled: Int32Array) -> bool:
        num_free = self.kv_cache.pool.num_free
        if not self.num_prefilling and len(rows) * self._most_blocks_per_decode <= num_free:
            return False
        return self.kv_cache.num_short(rows, num_scheduled) > num_free

    def _preempt(self) -> tuple[int, Request]:
        """Send a running request back to the queue; its row and the request.

        Blocks are short for those that have something to compute, so there is one; others have
        theirs back as soon as their last token is there.
        """
        table, running = self.table, self._running
        row = self.waiting.victim(running[~table.awaits_its_last(running)], table)
        request = table.requests[row]
        assert request is not None
        self.finish(np.array([row], np.int32))
        self.waiting.prepend_request(request)
        self.num_preemptions += 1
        return row, request

    def _admit(self, rows: Int32Array, num_scheduled: Int32Array) -> list[Admitted]:
        """Give rows to those of the waiting that fit beside ``rows``."""
        table, kv_cache = self.table, self.kv_cache
        budget = self._config.max_num_batched_tokens - int(num_scheduled.sum())
        reserved = kv_cache.num_short(rows, num_scheduled)
        admitted = []
        while self.waiting and budget > 0 and table.free_rows:
            request = self.waiting.peek_request()
            prefix = kv_cache.get_computed_blocks(request)
            num_computed = len(prefix) * self._config.block_size
            chunk = min(request.num_tokens - num_computed, budget)
            if not kv_cache.can_start(prefix, num_computed + chunk, reserved):
                break
            self.waiting.pop_request()
            row = table.take(request, num_computed)
            reserved += kv_cache.start(row, prefix, num_computed + chunk)
            budget -= chunk
            admitted.append(Admitted(row, request, num_computed, chunk))
        return admitted

    def _look_ahead(self, rows: Int32Array) -> Int32Array:
        """The passes that each of ``rows``, which all decode, goes on for before the next step is
        scheduled: to its last token at most. One, where blocks do not last for more.
        """
        table = self.table
        left = table.max_tokens[rows] - table.num_output_tokens[rows] - table.num_under_way[rows]
        passes: Int32Array = np.minimum(left, self._most_steps)
        if self.kv_cache.num_short(rows, passes) > self.kv_cache.pool.num_free:
            return np.ones_like(rows)
        table.num_under_way[rows] += passes - 1  # the step itself is counted as one
        return passes

    def _decodes(self, rows: Int32Array) -> BoolArray | None:
        if self._tokens_per_step == 1:
            return None
        table = self.table
        decodes: BoolArray = table.num_computed_tokens[rows] >= table.num_prefill_tokens[rows]
        return decodes

    def _advance(self, rows: Int32Array, num_scheduled: Int32Array) -> BoolArray | None:
        """Count the tokens as computed; bool mask of the rows that sample, or None for all."""
        table = self.table
        if not self.num_prefilling:
            table.num_computed_tokens[rows] = table.num_computed_tokens.take(rows) + num_scheduled
            return None
        prefilling = table.num_computed_tokens[rows] < table.num_prefill_tokens[rows]
        table.num_computed_tokens[rows] += num_scheduled
        samples = table.num_computed_tokens[rows] >= table.num_prefill_tokens[rows]
        self.num_prefilling -= int((prefilling & samples).sum())
        return None if samples.all() else samples

    def update(self, rows: Int32Array, num_tokens: Int32Array, decodes: BoolArray | None) -> None:
        """Take in what a step brought: ``num_tokens`` int32 each of ``rows`` sampled, 0 or more.

        Of the tokens scheduled for ``decodes`` rows those not accepted are undone, and those that
        the runner left out.
        """
        table = self.table
        arrived = np.minimum(num_tokens, self._most_steps)
        table.num_under_way[rows] = table.num_under_way.take(rows) - arrived
        if decodes is not None:
            table.num_computed_tokens[rows] -= decodes * (self._tokens_per_step - num_tokens)
        table.num_output_tokens[rows] = table.num_output_tokens.take(rows) + num_tokens

    def finish(self, rows: Int32Array) -> None:
        """Take back the rows and blocks of requests that have ended."""
        self.kv_cache.free(rows)
        table = self.table
        prompts_open = table.num_computed_tokens[rows] < table.num_prefill_tokens[rows]
        self.num_prefilling -= int(prompts_open.sum())
        gone = np.zeros(self._config.max_num_seqs, np.bool_)
        gone[rows] = True
        self._running = self._running[~gone[self._running]]
        table.give_up(rows)

    def abort_waiting(self, request_index: int) -> Request | None:
        """Take a request out of the queue, if it is there."""
        found = (each for each in self.waiting if each.request_index == request_index)
        request = next(found, None)
        if request is not None:
            self.waiting.remove_request(request)
        return request


def _new_requests(admitted: Sequence[Admitted]) -> NewRequests:
    own = [each.request.params.sampling for each in admitted]
    return NewRequests(
        [each.row for each in admitted],
        [each.request.request_index for each in admitted],
        [each.request.token_ids for each in admitted],
        [each.num_computed for each in admitted],
        [len(each.request.output_token_ids) for each in admitted],
        own if any(own) else (),
    )

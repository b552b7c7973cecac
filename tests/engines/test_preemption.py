"""Who gives way where blocks are short, with one step and with two under way."""

from collections import Counter, deque

import numpy as np
import pytest
from harness_free import null_config
from hypothesis import given
from hypothesis import strategies as st

from engines.builtin.request_table import Request, RequestTable
from engines.builtin.scheduler import ScheduledStep, Scheduler
from engines.protocol import SamplingParams

MOST_TOKENS = 8


class Life:
    """A scheduler's requests from the first to the last; each step samples a zero a row."""

    def __init__(self, policy: str, num_blocks: int) -> None:
        config = null_config(max_num_seqs=4, block_size=2, scheduling_policy=policy)
        self.table = RequestTable(config)
        self.scheduler = Scheduler(config, num_blocks, self.table, self._zeros)
        self.under_way: deque[ScheduledStep] = deque()
        self.sampled: Counter[int] = Counter()
        """Tokens by request, those under way included."""
        self.known: Counter[int] = Counter()

    def _zeros(self, row: int, start: int):
        return np.zeros(self.table.num_output_tokens[row] - start, np.int32)

    def add(self, index: int, prompt: int, output: int, priority: int) -> None:
        prompt_token_ids = np.zeros(prompt, np.int32)
        self.scheduler.add(Request(index, prompt_token_ids, SamplingParams(output), priority))

    def step(self, left_under_way: int) -> None:
        step, _, preempted = self.scheduler.schedule()
        for _, request in preempted:
            index = request.request_index
            assert self.sampled[index] < request.params.max_tokens, "its last token is coming"
            self.sampled[index] = self.known[index]
            request.output_token_ids = np.zeros(self.known[index], np.int32)
        if step is not None:
            rows, samples = step.output.rows, step.output.samples
            self.sampled.update(
                self.table.request_index[rows if samples is None else rows[samples]].tolist()
            )
            self.under_way.append(step)
        if len(self.under_way) > (left_under_way if step is not None else 0):
            self._take_in(self.under_way.popleft())

    def _take_in(self, step: ScheduledStep) -> None:
        rows, samples = step.output.rows, step.output.samples
        num_tokens = np.ones(len(rows), np.int32) if samples is None else samples.astype(np.int32)
        valid = self.table.epoch[rows] == step.epochs
        rows, num_tokens = rows[valid], num_tokens[valid]
        self.scheduler.update(rows, num_tokens, None)
        for index, count in zip(
            self.table.request_index[rows].tolist(), num_tokens.tolist(), strict=True
        ):
            self.known[index] += count
        ended = self.table.num_output_tokens[rows] >= self.table.max_tokens[rows]
        self.scheduler.finish(rows[ended])


@pytest.mark.parametrize("left_under_way", [0, 1])
@given(
    st.lists(
        st.tuples(st.integers(1, 8), st.integers(1, MOST_TOKENS), st.integers(0, 2)),
        min_size=1,
        max_size=8,
    ),
    st.sampled_from(["fcfs", "priority"]),
    st.integers(9, 14),
)
def test_nobody_gives_way_whose_last_token_is_coming(left_under_way, asked, policy, num_blocks):
    """It would compute all its tokens again, for the one that was there already."""
    life = Life(policy, num_blocks)
    for index, (prompt, output, priority) in enumerate(asked):
        life.add(index, prompt, output, priority)
    while life.scheduler.num_running or life.scheduler.waiting or life.under_way:
        life.step(left_under_way)
    assert life.known == {index: output for index, (_, output, _) in enumerate(asked)}
    pool = life.scheduler.kv_cache.pool
    assert pool.num_free == pool.num_blocks

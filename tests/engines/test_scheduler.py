"""Rows, blocks, prefixes and budget over many random steps, against a model in plain Python."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from harness_free import MODES, null_config, oracle
from harness_free import Request as Asked

from engines.builtin import scheduler as scheduler_module
from engines.builtin.device import null
from engines.builtin.device.null import NullDevice
from engines.builtin.engine import Engine
from engines.builtin.kv_cache_manager import KVCacheManager
from engines.builtin.request_table import Request, RequestTable
from engines.builtin.scheduler import Scheduler
from engines.protocol import EngineConfig, SamplingParams

CONFIG = null_config(max_num_seqs=7, max_num_batched_tokens=23, block_size=4, vocab_size=40)


class PrefixModel:
    """Which block holds which tokens, by the tokens themselves and one at a time."""

    def __init__(self, block_size: int) -> None:
        self.size = block_size
        self.block_of: dict[tuple[int, ...], int] = {}
        self.num_hits = 0

    def longest(self, tokens: tuple[int, ...]) -> list[int]:
        blocks = []
        for end in range(self.size, len(tokens), self.size):  # one token is always left
            if tokens[:end] not in self.block_of:
                break
            blocks.append(self.block_of[tokens[:end]])
        return blocks

    def give(self, blocks: list[int]) -> None:
        taken = set(blocks)
        self.block_of = {held: block for held, block in self.block_of.items() if block not in taken}

    def fill(self, tokens: tuple[int, ...], first: int, computed: int, blocks: list[int]) -> int:
        """Blocks from ``first`` on that are full now become findable; how many are."""
        full = min(computed, len(tokens)) // self.size
        for nth in range(first, full):
            self.block_of.setdefault(tokens[: (nth + 1) * self.size], blocks[nth])
        return max(first, full)


class Watched:
    """An engine whose every step is checked; ``most``: tokens a row was ever computed for."""

    def __init__(self, config: EngineConfig) -> None:
        self.config = config
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(null, "NullDevice", self._device_class())
            patch.setattr(scheduler_module, "Scheduler", self._scheduler_class())
            self.engine = Engine(config)
        self.model = PrefixModel(config.block_size)
        self.prompts: dict[int, list[int]] = {}
        self.outputs: dict[int, list[int]] = {}
        self.most: dict[int, int] = {}
        self.num_full: dict[int, int] = {}
        self.steps = []

    def _scheduler_class(self) -> type[Scheduler]:
        """A scheduler that can be looked at."""
        watched = self

        class WatchedScheduler(Scheduler):
            def __init__(self, *arguments):
                super().__init__(*arguments)
                watched.scheduler = self

        return WatchedScheduler

    def _device_class(self) -> type[NullDevice]:
        """A device that has each step checked before it runs."""
        watched = self

        class WatchedDevice(NullDevice):
            @staticmethod
            def build(config, parallel):
                return WatchedDevice(config)

            def launch(self, batch):
                watched.check_step(batch.scheduled)
                watched.check_batch(batch)
                return super().launch(batch)

        return WatchedDevice

    def add(self, index: int, prompt: list[int], max_tokens: int, stops=(), priority=0) -> None:
        self.prompts[index] = prompt
        asked = Asked(index, len(prompt), max_tokens, stops, 0, None)
        self.outputs[index] = oracle(self.config, asked)[0]
        params = SamplingParams(max_tokens, stop_token_ids=stops)
        self.engine.add_request(index, np.array(prompt, np.int32), params, priority)

    def step(self) -> None:
        self.running = dict(self.scheduler.table.row_of)
        self.queued = [request.request_index for request in self.scheduler.waiting]
        self.steps.clear()
        for delivered in self.engine.step().delivered:
            for index in delivered.finished.tolist():
                self.engine.output_token_ids(index)
        self._check_blocks()

    def check_step(self, step) -> None:
        self.steps.append(step)
        table = self.scheduler.table
        before = table.num_computed_tokens[step.rows] - step.num_scheduled
        decoding = before >= table.num_prefill_tokens[step.rows]
        assert (step.num_scheduled[decoding] == max(self.config.num_accepted)).all()
        assert 0 < step.num_scheduled.sum() <= self.config.max_num_batched_tokens
        assert (step.num_scheduled > 0).all()
        assert len(set(step.rows.tolist())) == len(step.rows) <= self.config.max_num_seqs
        places = list(zip(step.block_rows.tolist(), step.block_positions.tolist(), strict=True))
        assert len(set(places)) == len(places), "on a GPU either of two could be the last written"
        new = step.new
        assert new.request_index == self.queued[: len(new.rows)], "in the order of the queue"
        old = step.rows[: len(step.rows) - len(new.rows)]
        assert step.rows[len(old) :].tolist() == new.rows, "running requests go first"
        assert set(old.tolist()) <= set(self.running.values())
        for nth, index in enumerate(new.request_index):
            assert new.token_ids[nth].tolist() == list(self._known(index)), "nothing is forgotten"
            assert new.num_output[nth] == len(self._known(index)) - len(self.prompts[index])
            assert len(old) + nth < len(step.rows)
            assert before[len(old) + nth] == new.num_computed[nth]
            self.most.pop(index, None)
        if self.config.enable_prefix_caching:
            self._check_prefixes(step, len(old))
        else:
            assert not any(new.num_computed)
        for index, row in table.row_of.items():
            computed = int(table.num_computed_tokens[row])
            self.most[index] = max(self.most.get(index, 0), computed)

    def check_batch(self, batch) -> None:
        """What the runner keeps is what the scheduler knows."""
        kv_cache, table, step = self.scheduler.kv_cache, self.scheduler.table, batch.scheduled
        for row in table.row_of.values():
            blocks = kv_cache.block_table[row, : kv_cache.num_blocks[row]].tolist()
            assert batch.block_table[row, : len(blocks)].tolist() == blocks
        assert (batch.request_index == table.request_index[step.rows]).all()
        if self.config.output_processing == "inline":  # else the scheduler has yet to hear
            before = table.num_computed_tokens[step.rows] - step.num_scheduled
            assert (batch.context - batch.num_scheduled == before).all()
            assert (batch.position == table.num_output_tokens[step.rows]).all()

    def _known(self, index: int) -> tuple[int, ...]:
        """A running request's tokens, as far as its output has been processed."""
        table = self.scheduler.table
        count = int(table.num_output_tokens[table.row_of[index]])
        return (*self.prompts[index], *self.outputs[index][:count])

    def _check_prefixes(self, step, num_old: int) -> None:
        table, blocks = self.scheduler.table, self.scheduler.kv_cache.block_table
        size = self.config.block_size
        for nth, (row, index) in enumerate(zip(step.new.rows, step.new.request_index, strict=True)):
            tokens, prefix = self._known(index), self.model.longest(self._known(index))
            num_computed = step.new.num_computed[nth]
            assert num_computed == len(prefix) * size
            mine = step.block_rows == row
            positions, ids = step.block_positions[mine].tolist(), step.block_ids[mine].tolist()
            assert positions == list(range(len(positions)))
            assert ids[: len(prefix)] == prefix
            self.model.give(ids[len(prefix) :])
            end = num_computed + int(step.num_scheduled[num_old + nth])
            self.num_full[index] = self.model.fill(tokens, len(prefix), end, ids)
            self.model.num_hits += num_computed
        theirs = ~np.isin(step.block_rows, step.new.rows)
        self.model.give(step.block_ids[theirs].tolist())
        for row in step.rows[:num_old].tolist():
            index = int(table.request_index[row])
            self.num_full[index] = self.model.fill(
                self._known(index),
                self.num_full[index],
                int(table.num_computed_tokens[row]),
                blocks[row].tolist(),
            )

    def _check_blocks(self) -> None:
        kv_cache, table = self.scheduler.kv_cache, self.scheduler.table
        holders = np.zeros(kv_cache.pool.num_blocks, np.int64)
        for index, row in table.row_of.items():
            blocks = kv_cache.block_table[row, : kv_cache.num_blocks[row]].tolist()
            most = self.most[index]  # rejected tokens leave their blocks to the row
            assert len(blocks) == -(-most // self.config.block_size)
            rejected = most - table.num_computed_tokens[row]
            assert 0 <= rejected < 2 * max(self.config.num_accepted)
            assert rejected == 0 or max(self.config.num_accepted) > 1
            assert len(set(blocks)) == len(blocks)
            holders[blocks] += 1
        assert (kv_cache.pool.ref_cnt == holders).all()
        assert kv_cache.pool.num_free == (holders == 0).sum()
        assert self.config.enable_prefix_caching or holders.max(initial=0) <= 1
        assert self.scheduler.num_running == len(table.row_of)
        rows = np.array(list(table.row_of.values()), np.int32)
        in_prompt = table.num_computed_tokens[rows] < table.num_prefill_tokens[rows]
        assert self.scheduler.num_prefilling == in_prompt.sum()
        assert len(table.row_of) + len(table.free_rows) == self.config.max_num_seqs


SCARCE = {"num_gpu_blocks_override": 24}
SHARED = {"enable_prefix_caching": True}
BY_PRIORITY = {"scheduling_policy": "priority"}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("num_accepted", [pytest.param((1,), marks=pytest.mark.slow), (1, 2, 4)])
@pytest.mark.parametrize(
    "memory", [{}, SCARCE, SHARED, SCARCE | SHARED, SCARCE | SHARED | BY_PRIORITY]
)
def test_accounts_over_random_steps(mode, num_accepted, memory):
    config = replace(CONFIG, output_processing=mode, num_accepted=num_accepted, **memory)
    random, watched = Random(5), Watched(config)
    engine, added = watched.engine, 0
    for step in range(1_000):
        if random.random() < (0.5, 0.05)[step // 100 % 2]:  # crowds, then next to nobody
            prompt = [7] * random.randint(0, 20) + [random.randint(0, 1)] * random.randint(1, 20)
            stops = (3,) if random.random() < 0.5 else ()
            watched.add(added, prompt, random.randint(1, 24), stops, random.randint(0, 2))
            added += 1
        if added and random.random() < 0.1:
            engine.abort_request(random.randrange(max(0, added - 12), added))
        watched.step()
    while engine.has_unfinished_requests():
        watched.step()
    pool, stats = watched.scheduler.kv_cache.pool, engine.scheduler_stats()
    assert added > 150
    assert pool.num_free == pool.num_blocks
    assert watched.scheduler.num_prefilling == 0
    assert (stats["num_preemptions"] > 10) == ("num_gpu_blocks_override" in memory)
    assert stats["prefix_cache_hits"] == watched.model.num_hits
    assert (stats["prefix_cache_hits"] > 500) == ("enable_prefix_caching" in memory)


@pytest.mark.parametrize("mode", MODES)
def test_nothing_is_computed_past_a_known_length(mode):
    """With two steps under way too: a request whose last token is coming is not launched again."""
    watched = Watched(replace(CONFIG, output_processing=mode))
    for index in range(20):
        watched.add(index, [0], 1 + index % 4)
    launched = 0
    while watched.engine.has_unfinished_requests():
        watched.step()
        launched += sum(len(step.rows) for step in watched.steps)
    assert launched == 5 * (1 + 2 + 3 + 4)


def scheduler(config: EngineConfig, num_blocks: int) -> Scheduler:
    """One whose requests sample zeros."""
    table = RequestTable(config)

    def zeros(row: int, start: int):
        return np.zeros(table.num_output_tokens[row] - start, np.int32)

    return Scheduler(config, num_blocks, table, zeros)


def take_in(scheduler: Scheduler, step) -> None:
    """Say that each row of a step has sampled one token, where its prompt is through."""
    rows, samples = step.output.rows, step.output.samples
    num_tokens = np.ones(len(rows), np.int32) if samples is None else samples.astype(np.int32)
    scheduler.update(rows, num_tokens, None)


def request(index: int, prompt: int = 4, output: int = 4, priority: int = 0) -> Request:
    return Request(index, np.arange(prompt, dtype=np.int32), SamplingParams(output), priority)


def indices(pairs) -> list[int]:
    return [each[1].request_index for each in pairs]


def test_scarce_blocks_hold_the_queue_in_its_order():
    queue = scheduler(replace(CONFIG, max_num_batched_tokens=100), num_blocks=7)
    for index, size in enumerate([20, 20, 1]):  # 5, 5 and 1 blocks for their prompts
        queue.add(request(index, prompt=size, output=2))
    first = queue.schedule()
    assert indices(first.admitted) == [0], "a small one does not overtake"
    queue.finish(first.step.output.rows)
    assert indices(queue.schedule().admitted) == [1, 2]


def test_the_last_admitted_gives_way_and_comes_back_first():
    """Three requests of a block each, four blocks: at the next border two must go."""
    queue = scheduler(CONFIG, num_blocks=4)
    for index in range(4):
        queue.add(request(index, prompt=4, output=6))
    first = queue.schedule()
    assert indices(first.admitted) == [0, 1, 2, 3]
    take_in(queue, first.step)
    second = queue.schedule()
    assert indices(second.preempted) == [3, 2], "two more blocks, from the two that came last"
    assert second.step.output.rows.tolist() == [each.row for each in first.admitted[:2]]
    assert [request.request_index for request in queue.waiting] == [2, 3]
    assert queue.num_preemptions == 2


def test_the_least_urgent_gives_way_under_priority():
    queue = scheduler(replace(CONFIG, scheduling_policy="priority"), num_blocks=4)
    for index, priority in enumerate([5, 0, 5, 1]):
        queue.add(request(index, prompt=4, output=6, priority=priority))
    first = queue.schedule()
    assert indices(first.admitted) == [1, 3, 0, 2], "a smaller number goes first"
    take_in(queue, first.step)
    second = queue.schedule()
    assert indices(second.preempted) == [2, 0], "of equals the one that came last"
    assert [request.request_index for request in queue.waiting] == [0, 2]


def test_a_preempted_request_computes_its_output_again():
    queue = scheduler(CONFIG, num_blocks=4)
    for index in range(2):
        queue.add(request(index, prompt=7, output=6))
    for _ in range(2):
        take_in(queue, queue.schedule().step)
    third = queue.schedule()  # a third block for each is wanted, and there is none
    assert indices(third.preempted) == [1]
    ((_, preempted),) = third.preempted
    preempted.output_token_ids = np.array([8, 9], np.int32)
    take_in(queue, third.step)
    queue.finish(third.step.output.rows)
    (again,) = queue.schedule().admitted
    assert again[1:] == (preempted, 0, 9)
    assert again.request.token_ids.tolist() == [0, 1, 2, 3, 4, 5, 6, 8, 9]


def test_requests_of_one_step_share_a_prefix():
    queue = scheduler(replace(CONFIG, enable_prefix_caching=True), num_blocks=20)
    for index in range(3):
        queue.add(request(index, prompt=11))
    admitted = queue.schedule().admitted
    assert [each.num_computed for each in admitted] == [0, 8, 8]
    assert sorted(queue.kv_cache.pool.ref_cnt.tolist())[-2:] == [3, 3]
    assert queue.kv_cache.pool.num_free == 20 - (3 + 1 + 1)


def test_of_a_prefix_that_nobody_holds_the_end_is_forgotten_first():
    config = replace(CONFIG, enable_prefix_caching=True)
    table = RequestTable(config)
    kv_cache = KVCacheManager(config, 5, table, lambda row, start: np.empty(0, np.int32))
    first = request(0, prompt=17)
    row = table.take(first, 0)
    kv_cache.start(row, kv_cache.get_computed_blocks(first), 16)
    kv_cache.free(np.array([row], np.int32))
    kv_cache.pool.allocate(1)  # the one that was never used
    kv_cache.prefix_cache.allocate(2)
    assert len(kv_cache.get_computed_blocks(request(1, prompt=17))) == 2


def test_running_requests_use_the_budget_first():
    queue = scheduler(replace(CONFIG, max_num_batched_tokens=4), num_blocks=100)
    queue.add(request(0, prompt=10))
    queue.add(request(1, prompt=3))
    chunks = [queue.schedule().step.output for _ in range(4)]
    assert [chunk.num_scheduled.tolist() for chunk in chunks] == [[4], [4], [2, 2], [1, 1]]
    assert [
        chunk.samples if chunk.samples is None else chunk.samples.tolist() for chunk in chunks
    ] == [[False], [False], [True, False], None]


@pytest.mark.parametrize(
    ("prompt", "output", "num_blocks", "sentence"),
    [
        (0, 4, 99, "request 6: needs a prompt and max_tokens >= 1"),
        (4, 0, 99, "request 6: needs a prompt and max_tokens >= 1"),
        (60, 5, 99, "request 6: prompt and output make 65 tokens, max_model_len is 64"),
        (30, 30, 15, "request 6: needs 16 KV blocks, the pool has 15"),
    ],
)
def test_refuses_what_can_never_be_served(prompt, output, num_blocks, sentence):
    queue = scheduler(CONFIG, num_blocks)
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        queue.add(request(6, prompt, output))
    assert not queue.waiting


def test_aborts_of_the_unknown_and_the_finished_are_left_alone():
    engine = Engine(CONFIG)
    engine.abort_request(3)
    engine.add_request(3, np.arange(2, dtype=np.int32), SamplingParams(2))
    while engine.has_unfinished_requests():
        engine.step()
    engine.abort_request(3)
    assert len(engine.output_token_ids(3)) == 2
    with pytest.raises(KeyError):
        engine.output_token_ids(3)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"max_num_seqs": 0}, "batch size 0: must be at least 1"),
        ({"num_accepted": (1, 0)}, "num_accepted: every decode step must yield"),
        ({"num_accepted": ()}, "num_accepted: every decode step must yield"),
        ({"num_accepted": (4,), "max_num_batched_tokens": 3}, "max_num_batched_tokens 3: .* 4;"),
        (
            {"representation": "list_of_list"},
            "unknown representation 'list_of_list'; did you mean ",
        ),
        ({"num_gpu_blocks_override": -1}, "--axis num-gpu-blocks-override=-1: must be 0 or more"),
        ({"scheduling_policy": "prio"}, "unknown scheduling policy 'prio'; did you mean priority"),
        ({"worker": "proces"}, "unknown worker 'proces'; did you mean "),
        ({"delivery": "columnar"}, "columnar delivery of list_of_lists: it has no columns"),
    ],
)
def test_an_impossible_configuration_is_refused(fields, sentence):
    with pytest.raises(ValueError, match=sentence):
        Engine(null_config(**fields))

"""Rows, blocks and budget over many random steps, against what a step may and must not do."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from harness_free import MODES, null_config

from engines.builtin.engine import Engine
from engines.builtin.request_table import NewRequest
from engines.builtin.scheduler import Scheduler
from engines.protocol import EngineConfig

CONFIG = null_config(max_num_seqs=7, max_num_batched_tokens=23, block_size=4, vocab_size=40)


class Watched:
    """An engine whose every step is checked; ``most``: tokens a request was ever computed for."""

    def __init__(self, config: EngineConfig) -> None:
        self.engine = Engine(config)
        self.config = config
        self.scheduler = self.engine._scheduler
        self.most: dict[int, int] = {}
        self.steps = []
        self._launch = self.engine._worker.launch
        self.engine._worker.launch = self._note_and_launch

    def _note_and_launch(self, step) -> None:
        table = self.scheduler.table
        self.steps.append(step)
        decoding = (
            table.num_computed_tokens[step.rows] - step.num_scheduled
            >= table.num_prompt_tokens[step.rows]
        )
        assert (step.num_scheduled[decoding] == max(self.config.num_accepted)).all()
        for index, computed in zip(
            table.request_index[step.rows].tolist(),
            table.num_computed_tokens[step.rows].tolist(),
            strict=True,
        ):
            self.most[index] = max(self.most.get(index, 0), computed)
        self._launch(step)

    def step(self) -> None:
        table = self.scheduler.table
        running = dict(table.row_of)
        queued = [request.request_index for request in self.scheduler.waiting]
        self.steps.clear()
        output = self.engine.step()
        for index in output.finished.tolist():
            self.engine.output_token_ids(index)
        for step in self.steps:
            self._check_launched(step, running, queued)
        self._check_blocks()

    def _check_launched(self, step, running, queued) -> None:
        assert 0 < step.num_scheduled.sum() <= self.config.max_num_batched_tokens
        assert (step.num_scheduled > 0).all()
        assert len(set(step.rows.tolist())) == len(step.rows) <= self.config.max_num_seqs
        assert step.new_request_index == queued[: len(step.new_rows)], "first come, first served"
        old = step.rows[: len(step.rows) - len(step.new_rows)]
        assert step.rows[len(old) :].tolist() == step.new_rows, "running requests go first"
        assert set(old.tolist()) <= set(running.values())

    def _check_blocks(self) -> None:
        scheduler, table = self.scheduler, self.scheduler.table
        runner = self.engine._worker._runner
        held = []
        for index, row in table.row_of.items():
            blocks = scheduler._block_table[row, : scheduler._num_blocks[row]].tolist()
            most = self.most[index]  # rejected tokens leave their blocks to the row
            assert len(blocks) == -(-most // self.config.block_size)
            rejected = most - table.num_computed_tokens[row]
            assert 0 <= rejected < 2 * max(self.config.num_accepted)
            assert rejected == 0 or max(self.config.num_accepted) > 1
            assert scheduler._num_promised[row] >= 0
            assert runner._block_table[row, : len(blocks)].tolist() == blocks
            if self.config.output_processing == "inline":  # else the scheduler has yet to hear
                assert runner._num_computed[row] == table.num_computed_tokens[row]
                assert runner._num_output[row] == table.num_output_tokens[row]
            held += blocks
        assert len(held) == len(set(held))
        assert scheduler.pool.num_free + len(held) == scheduler.pool.num_blocks
        assert scheduler.num_running == len(table.row_of)
        assert len(table.row_of) + len(table.free_rows) == self.config.max_num_seqs
        running = list(table.row_of.values())
        promised = int(scheduler._num_promised[running].sum())
        assert scheduler._promised == promised <= scheduler.pool.num_free


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("num_accepted", [(1,), (1, 2, 4)])
def test_accounts_over_random_steps(mode, num_accepted):
    config = replace(CONFIG, output_processing=mode, num_accepted=num_accepted)
    random, watched = Random(5), Watched(config)
    engine, added = watched.engine, 0
    for step in range(2_500):
        if random.random() < (0.5, 0.05)[step // 100 % 2]:  # crowds, then next to nobody
            prompt = np.arange(random.randint(1, 40), dtype=np.int32)
            stops = (3,) if random.random() < 0.5 else ()
            engine.add_request(added, prompt, random.randint(1, 24), stops)
            added += 1
        if added and random.random() < 0.1:
            engine.abort_request(random.randrange(max(0, added - 12), added))
        watched.step()
    while engine.has_unfinished_requests():
        watched.step()
    assert added > 300
    assert watched.scheduler.pool.num_free == watched.scheduler.pool.num_blocks
    assert watched.scheduler._promised == watched.scheduler._num_prefilling == 0


@pytest.mark.parametrize("mode", MODES)
def test_nothing_is_computed_past_a_known_length(mode):
    """With two steps under way too: a request whose last token is coming is not launched again."""
    watched = Watched(replace(CONFIG, output_processing=mode))
    for index in range(20):
        watched.engine.add_request(index, np.zeros(1, np.int32), 1 + index % 4)
    launched = 0
    while watched.engine.has_unfinished_requests():
        watched.step()
        launched += sum(len(step.rows) for step in watched.steps)
    assert launched == 5 * (1 + 2 + 3 + 4)


def request(index: int, prompt: int = 4, output: int = 4) -> NewRequest:
    return NewRequest(index, np.arange(prompt, dtype=np.int32), output, ())


def test_scarce_blocks_hold_the_queue_in_its_order():
    scheduler = Scheduler(CONFIG, num_blocks=7)
    for index, size in enumerate([16, 20, 1]):  # 5, 6 and 2 blocks, two tokens' slack included
        scheduler.add(request(index, prompt=2, output=size))
    step, admitted = scheduler.schedule()
    assert [new.request_index for _, new in admitted] == [0], "a small one does not overtake"
    scheduler.finish(step.output.rows)
    _, admitted = scheduler.schedule()
    assert [new.request_index for _, new in admitted] == [1]


def test_running_requests_use_the_budget_first():
    scheduler = Scheduler(replace(CONFIG, max_num_batched_tokens=4), num_blocks=100)
    scheduler.add(request(0, prompt=10))
    scheduler.add(request(1, prompt=3))
    chunks = [scheduler.schedule()[0].output for _ in range(4)]
    assert [chunk.num_scheduled.tolist() for chunk in chunks] == [[4], [4], [2, 2], [1, 1]]
    assert [
        chunk.samples if chunk.samples is None else chunk.samples.tolist() for chunk in chunks
    ] == [
        [False],
        [False],
        [True, False],
        None,
    ]


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
    scheduler = Scheduler(CONFIG, num_blocks)
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        scheduler.add(request(6, prompt, output))
    assert not scheduler.waiting


def test_aborts_of_the_unknown_and_the_finished_are_left_alone():
    engine = Engine(CONFIG)
    engine.abort_request(3)
    engine.add_request(3, np.arange(2, dtype=np.int32), 2)
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
        ({"representation": "list_of_list"}, "unknown representation 'list_of_list'; nearest: "),
        ({"worker": "proces"}, "unknown worker 'proces'; nearest: "),
        ({"delivery": "columnar"}, "columnar delivery of list_of_lists: it has no columns"),
    ],
)
def test_an_impossible_configuration_is_refused(fields, sentence):
    with pytest.raises(ValueError, match=sentence):
        Engine(null_config(**fields))

"""The runner in the place of vLLM's, fed by a scheduler that does all that vLLM's may do."""

from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from vllm_trials import cell, outputs, schedule

from engines.builtin.registries import REPRESENTATIONS
from engines.vllm.request_names import request_number
from engines.vllm.runner import HostPathRunner
from harness.trial.engine_config import engine_config

BATCH = 4
SHAPES = [name for name in REPRESENTATIONS.names() if REPRESENTATIONS.load(name).owns_memory]


class Request(SimpleNamespace):
    """``computed``: tokens in the cache; ``tokens``: those that have come back."""

    name: str
    prompt: list[int]
    wanted: list[int]
    tokens: list[int]
    computed: int

    @property
    def length(self) -> int:
        return len(self.prompt) + len(self.tokens)

    @property
    def decodes(self) -> bool:
        return bool(self.tokens) and self.computed == self.length - 1


def scheduler_output(
    new: list[Request], cached: list[Request], num_scheduled: dict[str, int], finished: set[str]
) -> Any:
    return SimpleNamespace(
        finished_req_ids=finished,
        scheduled_new_reqs=[
            SimpleNamespace(req_id=each.name, prompt_token_ids=each.prompt, num_computed_tokens=0)
            for each in new
        ],
        scheduled_cached_reqs=SimpleNamespace(
            req_ids=[each.name for each in cached],
            num_computed_tokens=[each.computed for each in cached],
        ),
        num_scheduled_tokens=num_scheduled,
        total_num_scheduled_tokens=sum(num_scheduled.values()),
    )


@pytest.mark.parametrize("shape", SHAPES)
@examples(25)
@given(st.randoms(use_true_random=False))
def test_chunks_preemptions_drafts_and_reordered_rows_change_no_token(shape, random: Random):
    num_accepted = random.choice([[1], [1, 3, 2]])
    count, most_drafts = random.randint(1, 12), max(num_accepted) - 1
    of = schedule(
        [random.randint(1, 6) for _ in range(count)],
        [random.randint(1, 12) for _ in range(count)],
        num_accepted=np.array(num_accepted),
    )
    wanted = outputs(of)
    runner = HostPathRunner(
        engine_config(cell("builtin", batch_size=BATCH, representation=shape), of)
    )
    read = REPRESENTATIONS.load(shape)().per_request
    waiting = [
        Request(
            name=f"{i}-{random.randrange(16**8):08x}",
            prompt=[0] * int(of.prompt_lens[i]),
            wanted=wanted[i][0],
            tokens=[],
            computed=0,
        )
        for i in range(count)
    ]
    running: list[Request] = []
    preempted: list[Request] = []
    finished: set[str] = set()
    while waiting or running or preempted:
        if running and random.random() < 0.15:
            evicted = running.pop(random.randrange(len(running)))
            evicted.computed = 0
            preempted.append(evicted)
        new, resumed = [], []
        while preempted and len(running) + len(resumed) < BATCH and random.random() < 0.7:
            resumed.append(preempted.pop())
        # As vLLM: nobody is admitted before those who were evicted.
        while (
            waiting
            and not preempted
            and len(running) + len(resumed) + len(new) < BATCH
            and random.random() < 0.7
        ):
            new.append(waiting.pop())
        running += resumed
        cached = random.sample(running, k=random.randint(0, len(running)))  # the rest stand still
        rows = [*cached, *new]
        running += new
        # A request that is new and stands still does not exist; one without a step is nothing.
        if not rows:
            continue
        chunks = {
            each.name: 1 + random.randint(0, most_drafts)
            if each.decodes
            else random.randint(1, each.length - each.computed)
            if random.random() < 0.4
            else each.length - each.computed
            for each in rows
        }
        is_decode = {each.name: each.decodes for each in rows}
        step = runner.launch(scheduler_output(new, cached, chunks, finished))
        step.handle.wait()
        if most_drafts:
            names, drafts = runner.draft(step)
            assert [len(each) for each in drafts] == [most_drafts] * len(names)
        sampled = list(read(runner.handoff(step)))
        assert step.req_ids == [each.name for each in rows]
        assert [step.req_id_to_index[each.name] for each in rows] == list(range(len(rows)))
        finished = set()
        for each, got in zip(rows, sampled, strict=True):
            each.computed += chunks[each.name]
            tokens = [got] if isinstance(got, int) else got
            if is_decode[each.name]:
                assert 1 <= len(tokens) <= chunks[each.name]
            else:
                assert len(tokens) == (each.computed == each.length)
            each.tokens += tokens
            each.computed = min(each.computed, each.length - 1 if tokens else each.computed)
            del each.tokens[len(each.wanted) :]  # as vLLM cuts what comes after the end
            assert each.tokens == each.wanted[: len(each.tokens)]
            if len(each.tokens) == len(each.wanted):
                running.remove(each)
                finished.add(each.name)


def test_requests_with_names_of_others_are_numbered_as_they_come():
    of = schedule([1, 1, 1], [2, 2, 2])
    config = engine_config(cell("builtin", batch_size=BATCH, representation="list_of_lists"), of)
    runner, names = HostPathRunner(config), ["cmpl-7f", "chatcmpl-8", "cmpl-9c"]
    new = [Request(name=name, prompt=[0, 0], wanted=[], tokens=[], computed=0) for name in names]
    asked = scheduler_output(new, [], dict.fromkeys(names, 2), set())
    tokens = runner.handoff(runner.launch(asked))
    assert tokens == [each for each, _ in outputs(of)]


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("7", 7),
        ("7-0badcafe", 7),
        ("cmpl-7-0-0badcafe", 7),
        ("cmpl-0badcafe-0", None),
        ("a-7", None),
    ],
)
def test_a_request_has_its_number_in_whatever_vllm_makes_of_its_name(name, number):
    assert request_number(name) == number

"""Requests that say themselves how their tokens are drawn."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny_models import Saved, save

from engines.builtin.engine import Engine
from engines.builtin.model.gumbel_reference import sample_reference
from engines.builtin.model.sampler import Sampler
from engines.protocol import EngineConfig, Sampling, SamplingParams

SEED, TOKENS = 7, 12
PROMPT = np.array([3, 1, 4, 1, 5], np.int32)
samplings = st.builds(
    Sampling,
    st.sampled_from([0.0, 0.3, 1.0, 2.5]),
    st.sampled_from([0, 1, 2, 40]),
    st.sampled_from([0.1, 0.6, 1.0]),
)


@given(st.lists(samplings, min_size=1, max_size=70), st.integers(0, 2**32))
def test_each_row_is_drawn_as_if_all_were_drawn_like_it(rows, seed):
    logits = torch.randn(len(rows), 30, generator=torch.Generator().manual_seed(seed))
    requests, positions = torch.arange(len(rows)), torch.arange(len(rows)) * 3 % 11
    own = torch.tensor([row[:3] for row in rows], dtype=torch.float64)
    greedy = Sampler(Sampling(), SEED, sample_reference)
    found = greedy.sample(logits, requests, positions, own).tolist()
    for place, row in enumerate(rows):
        alone = Sampler(row, SEED, sample_reference).sample(
            *(each[place : place + 1] for each in (logits, requests, positions))
        )
        assert found[place] == alone.item()


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Saved:
    pytest.importorskip("transformers")
    return save("opt", tmp_path_factory.mktemp("opt-own"))


def outputs(folder: Path, asked: list[Sampling | None], **fields: object) -> list[list[int]]:
    """Of requests with the same prompt, served together."""
    known = {"max_num_seqs": 8, "max_model_len": 40, "device": "cpu", "block_size": 4}
    engine = Engine(EngineConfig(**known | {"model": str(folder)} | fields))
    params = SamplingParams(TOKENS)
    found = {}
    try:
        for index, sampling in enumerate(asked):
            engine.add_request(index, PROMPT, replace(params, sampling=sampling))
        while engine.has_unfinished_requests():
            for delivered in engine.step().delivered:
                for index in delivered.finished.tolist():
                    found[index] = engine.output_token_ids(index).tolist()
    finally:
        engine.shutdown()
    return [found[index] for index in range(len(asked))]


HOT = Sampling(5.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"num_scheduler_steps": 3},
        {"output_processing": "overlapped"},
        {"worker": "process", "wire": "msgpack-delta"},
        pytest.param({"worker": "process", "wire": "full"}, marks=pytest.mark.slow),
        pytest.param({"worker": "process", "wire": "columns"}, marks=pytest.mark.slow),
    ],
)
def test_a_request_is_drawn_as_it_asks_and_the_others_as_the_engine_does(saved, fields):
    seeded = HOT._replace(seed=5)
    greedy, hot, five, five_again, six, others = outputs(
        saved.folder,
        [None, HOT, seeded, seeded, HOT._replace(seed=6), Sampling(5.0, top_k=1)],
        **fields,
    )
    assert five == five_again
    assert len({tuple(each) for each in (greedy, hot, five, six)}) == 4
    assert others == greedy
    (alone,) = outputs(saved.folder, [None])
    assert greedy == alone
    engines_hot, cold = outputs(saved.folder, [None, Sampling()], sampling="5", **fields)
    assert (engines_hot == greedy, cold == greedy) == (False, True)

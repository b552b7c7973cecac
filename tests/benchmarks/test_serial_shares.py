"""The H200's published steps beside the least that their parts take, from the published file."""

import json

import pytest

from benchmarks.serial_shares import AIMS, trial
from engines.builtin.model.config import load_model
from workloads.catalog import load_workload


@pytest.fixture(scope="module")
def trials():
    return [trial(stored) for stored in json.loads(AIMS.read_bytes())["workloads"]]


def test_what_is_left_for_attention_is_what_the_lengths_make_it(trials):
    """By hand: each of 1,024 requests has 48 prompt tokens, then 499 steps over one key more."""
    decoded = 1024 * sum(48 + step for step in range(1, 500))
    for each in trials:
        model = load_model(load_workload(each.workload).model).config
        context = each.work["attention_bytes"] / model.kv_bytes_per_token(2)
        pairs = each.work["attention_flops"] / model.attention_flops_per_token_pair
        # A prompt that is cut between steps reads its first part again.
        again = 0 if each.prompts_at_once else 159
        assert context == pytest.approx(decoded + 1024 * 48 + again, abs=0.01)
        assert pairs == pytest.approx(decoded + 1024 * 48 * 49 / 2, abs=0.01)


def test_opt_is_bound_by_attention_and_llama_by_products(trials):
    opt, _, llama, _ = (each.shares for each in trials)
    assert [100 * share for share in opt] == pytest.approx([10.1, 76.6, 1.4], abs=0.06)
    assert [100 * share for share in llama] == pytest.approx([56.9, 25.7, 0.3], abs=0.06)

"""What a step cannot do without, counted by hand for a small model."""

import numpy as np
import pytest

from engines.builtin.model.config import load_model
from engines.builtin.model.work import Work


def int32(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def int64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def test_a_step_moves_weights_keys_values_and_logits():
    """Two rows that decode and a prompt that is not through."""
    model = load_model("opt-125m").config
    work = Work(model, itemsize=2, num_ranks=1)
    work.add(int32(1, 1, 5), int64(10, 20, 5), num_sampled=2)
    hidden, layers, vocab_size = 768, 12, 50272
    matrices = layers * (4 * hidden * hidden + 2 * hidden * 3072) + vocab_size * hidden
    keys_and_values = 2 * layers * hidden * (10 + 20 + 5)
    logits = 2 * 2 * vocab_size
    assert work.done()["bytes"] == 2 * (matrices + keys_and_values + logits)


def test_work_is_told_apart_into_products_attention_and_logits():
    """By hand, of a rank of two: three rows that decode, all sampled."""
    work = Work(load_model("qwen3-0.6b").config, itemsize=2, num_ranks=2)
    work.add(int32(1, 1, 1), int32(10, 20, 30), num_sampled=3)
    done = work.done()
    multiplied = 28 * (2 * 1024 * 2048 + 2 * 1024 * 1024 + 3 * 1024 * 3072) + 151_936 * 1024
    assert done["linear_bytes"] == 2 * multiplied / 2
    assert done["linear_flops"] == 3 * 2 * multiplied / 2
    assert done["attention_bytes"] == 60 * 2 * 28 * 8 * 128 * 2 / 2
    assert done["attention_flops"] == 60 * 4 * 28 * 16 * 128 / 2
    logits = 2 * 3 * 151_936 * 2 / 2
    assert done["bytes"] == done["linear_bytes"] + done["attention_bytes"] + logits
    assert done["flops"] == done["linear_flops"] + done["attention_flops"]


def test_a_step_that_samples_nothing_moves_no_logits():
    work = Work(load_model("opt-125m").config, itemsize=4, num_ranks=2)
    work.add(int32(5), int64(5), num_sampled=0)
    before = work.done()["bytes"]
    work.add(int32(5), int64(5), num_sampled=3)
    assert work.done()["bytes"] - 2 * before == 4 * 2 * 3 * 50272 / 2


@pytest.mark.parametrize("length", [1, 7, 100_000])
def test_a_query_of_a_chunk_meets_the_keys_up_to_its_own(length):
    """Behind three tokens; also where the pairs of one chunk are more than 32 bits count."""
    model = load_model("opt-125m").config
    work = Work(model, itemsize=2, num_ranks=1)
    work.add(int32(length), int64(3 + length), num_sampled=0)
    pairs = sum(range(4, 4 + length))
    layers = length * 12 * 2 * (4 * 768 * 768 + 2 * 768 * 3072)
    assert work.done()["flops"] == layers + pairs * 4 * 12 * 768

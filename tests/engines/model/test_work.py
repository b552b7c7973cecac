"""What a step cannot do without, counted by hand for a small model."""

import numpy as np

from engines.builtin.model.config import load_model
from engines.builtin.model.work import Work


def int32(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def test_a_step_moves_weights_keys_values_and_logits():
    """Two rows that decode and a prompt that is not through."""
    model = load_model("opt-125m").config
    work = Work(model, itemsize=2, num_ranks=1)
    work.add(int32(1, 1, 5), int32(10, 20, 5), num_sampled=2)
    hidden, layers, vocab_size = 768, 12, 50272
    matrices = layers * (4 * hidden * hidden + 2 * hidden * 3072) + vocab_size * hidden
    keys_and_values = 2 * layers * hidden * (10 + 20 + 5)
    logits = 2 * 2 * vocab_size
    assert work.done()["bytes"] == 2 * (matrices + keys_and_values + logits)


def test_a_step_that_samples_nothing_moves_no_logits():
    work = Work(load_model("opt-125m").config, itemsize=4, num_ranks=2)
    work.add(int32(5), int32(5), num_sampled=0)
    before = work.bytes
    work.add(int32(5), int32(5), num_sampled=3)
    assert work.bytes - 2 * before == 4 * 2 * 3 * 50272

"""The interval of sampled steps holds what all of them took."""

import numpy as np
import pytest

from harness.explain.sampling import relative_half_width


def test_the_interval_holds_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(0)
    every, held, tries = 13, 0, 400
    for _ in range(tries):
        rows = rng.integers(100, 257, 1300)
        bytecodes = 900 + rows * 300 + rng.gamma(1.0, 4000.0, 1300)
        picked = np.arange(0, 1300, every) + rng.integers(0, every, 100)
        samples = list(zip(rows[picked].tolist(), bytecodes[picked].tolist(), strict=True))
        width = relative_half_width(samples, every)
        truth = bytecodes.sum() / rows.sum()
        found = bytecodes[picked].sum() / rows[picked].sum()
        held += abs(found - truth) <= width * found
    assert 0.92 <= held / tries <= 0.98


@pytest.mark.parametrize("samples", [[], [(4, 900)], [(0, 0), (0, 0)]])
def test_where_little_was_traced_nothing_is_claimed(samples):
    assert relative_half_width(samples, 13) is None


def test_all_steps_have_no_error():
    assert relative_half_width([(4, 900), (5, 1300)], 1) == 0

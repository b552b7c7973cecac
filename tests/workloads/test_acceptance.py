import numpy as np
import pytest

from workloads.acceptance import FixedAcceptance, UniformAcceptance, parse_acceptance


def test_fixed_is_a_table_of_one():
    table = FixedAcceptance(3).table(np.random.default_rng(0))
    assert (table.dtype, table.tolist()) == (np.int8, [3])


def test_uniform_fills_its_range():
    table = UniformAcceptance(1, 4).table(np.random.default_rng(0))
    assert (table.dtype, table.shape) == (np.int8, (1021,))
    assert np.unique(table).tolist() == [1, 2, 3, 4]
    assert UniformAcceptance(1, 127).table(np.random.default_rng(0), 20_000).max() == 127


def test_both_forms_parse():
    assert parse_acceptance("1") == FixedAcceptance(1)
    assert parse_acceptance(" 1..4 ") == UniformAcceptance(1, 4)


@pytest.mark.parametrize("text", ["", "0", "128", "-1", "4..1", "0..2", "1..200", "1...4", "1.5"])
def test_anything_else_is_refused(text):
    with pytest.raises(ValueError, match=r"tokens (a|per) step"):
        parse_acceptance(text)

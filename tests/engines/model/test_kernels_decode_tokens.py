"""The one kernel for a decode's indices says what plain torch says, under Triton's interpreter."""

import pytest
import torch
from examples import examples
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from engines.builtin.model import DecodeTokens
from engines.builtin.model.reference import ReferenceOps

pytestmark = pytest.mark.slow


def inputs(num_reqs: int, width: int, block_size: int, seed: int):
    """Columns of a wider tensor, as in a graph; rows of padding share one."""
    generator = torch.Generator().manual_seed(seed)
    num_rows, num_blocks = num_reqs + 3, 12

    def draw(low: int, high: int, *size: int) -> torch.Tensor:
        return torch.randint(low, high, size, generator=generator)

    rows = torch.zeros(2, num_reqs + 7, dtype=torch.int64)[0, :num_reqs]
    rows[:] = torch.randperm(num_rows, generator=generator)[:num_reqs]
    rows[num_reqs // 2 :] = num_rows - 1
    progress = draw(0, 1 << 40, 3, num_rows)
    progress[0] = draw(0, num_blocks * block_size + 1 - width, num_rows)
    table = draw(0, 1 << 31, num_rows, num_blocks).int()
    return rows, progress, draw(0, 128_000, num_rows), table


@given(
    num_reqs=st.integers(1, 150),
    width=st.integers(1, 5),
    block_size=st.sampled_from([1, 4, 16]),
    seed=st.integers(0, 999),
)
@examples(20, [HealthCheck.too_slow])
@pytest.mark.landing
def test_kernel_and_reference_agree(interpreted, num_reqs, width, block_size, seed):
    arguments = inputs(num_reqs, width, block_size, seed)
    options = {"width": width, "block_size": block_size}
    found = DecodeTokens(*interpreted("decode_tokens:decode_tokens", *arguments, **options))
    expected = ReferenceOps().decode_tokens(*arguments, **options)
    for name, one, other in zip(DecodeTokens._fields, found, expected, strict=True):
        assert one.dtype == other.dtype, name
        assert torch.equal(one, other), name


def test_the_reference_is_what_a_decode_says_by_hand():
    """Two rows that verify three tokens each, in blocks of four."""
    progress = torch.tensor([[0, 4], [0, 5], [31, 30]])
    table = torch.tensor([[2, 9], [6, 4]], dtype=torch.int32)
    found = ReferenceOps().decode_tokens(
        torch.tensor([1, 0]), progress, torch.tensor([11, 22]), table, width=3, block_size=4
    )
    assert found.positions.tolist() == [4, 5, 6, 0, 1, 2]
    assert found.slot_mapping.tolist() == [16, 17, 18, 8, 9, 10]
    assert found.token_ids.tolist() == [22, 22, 22, 11, 11, 11]
    assert found.requests.tolist() == [30, 30, 30, 31, 31, 31]
    assert found.outputs.tolist() == [5, 6, 7, 0, 1, 2]
    assert found.rows.tolist() == [1, 0]
    assert found.seq_lens.tolist() == [7, 3]


@pytest.mark.parametrize(("num_reqs", "width"), [(1, 1), (7, 3), (1025, 1)])
def test_tokens_go_where_it_is_their_turn_and_nowhere_else(interpreted, num_reqs, width):
    tokens = torch.arange(num_reqs * width, dtype=torch.int32).view(num_reqs, width)
    found = torch.full((4, num_reqs + 2, width), -7, dtype=torch.int32)
    for turn in (0, 6):
        expected = found.clone()
        interpreted("to_host:to_host", tokens + turn, found, torch.tensor([turn]))
        ReferenceOps().to_host(tokens + turn, expected, torch.tensor([turn]))
        assert torch.equal(found, expected)
    assert found[:, 0, 0].tolist() == [0, -7, 6, -7]
    assert (found[:, num_reqs:] == -7).all()

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
    """Of a wider tensor, as in a graph; rows of padding share one."""
    generator = torch.Generator().manual_seed(seed)
    num_rows, num_blocks = num_reqs + 3, 12

    def draw(low: int, high: int, *size: int) -> torch.Tensor:
        return torch.randint(low, high, size, generator=generator)

    wide = torch.zeros(5, num_reqs + 7, dtype=torch.int64)
    decodes = wide[:4, :num_reqs]
    decodes[0] = torch.randperm(num_rows, generator=generator)[:num_reqs]
    decodes[0, num_reqs // 2 :] = num_rows - 1
    decodes[1] = draw(width, num_blocks * block_size + 1, num_reqs)
    decodes[2:] = draw(0, 1 << 40, 2, num_reqs)
    table = draw(0, 1 << 31, num_rows, num_blocks).int()
    return decodes, draw(0, 128_000, num_rows), table


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
    decodes = torch.tensor([[1, 0], [7, 3], [30, 31], [5, 0]])
    table = torch.tensor([[2, 9], [6, 4]], dtype=torch.int32)
    found = ReferenceOps().decode_tokens(
        decodes, torch.tensor([11, 22]), table, width=3, block_size=4
    )
    assert found.positions.tolist() == [4, 5, 6, 0, 1, 2]
    assert found.slot_mapping.tolist() == [16, 17, 18, 8, 9, 10]
    assert found.token_ids.tolist() == [22, 22, 22, 11, 11, 11]
    assert found.requests.tolist() == [30, 30, 30, 31, 31, 31]
    assert found.outputs.tolist() == [5, 6, 7, 0, 1, 2]
    assert found.rows.tolist() == [1, 0]
    assert found.seq_lens.tolist() == [7, 3]

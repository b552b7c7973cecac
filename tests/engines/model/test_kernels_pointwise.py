"""Norms and the activation in Triton equal torch in float64, under Triton's interpreter."""

import pytest
import torch
from examples import examples
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from kernel_oracles import assert_close, random_tensor
from torch.nn import functional as F

pytestmark = pytest.mark.slow

sizes = st.sampled_from([1, 7, 64, 200])
dtypes = st.sampled_from([torch.float32, torch.float16, torch.bfloat16])
quick = examples(15, [HealthCheck.too_slow])


def tensor(*size, seed, dtype):
    return random_tensor(*size, seed=seed, dtype=dtype, device="cpu")


@given(
    num_tokens=st.integers(1, 4),
    hidden_size=sizes,
    dtype=dtypes,
    seed=st.integers(0, 999),
    layer=st.booleans(),
    add=st.booleans(),
    offset=st.sampled_from([0.0, 3.0]),
)
@quick
def test_norms(interpreted, num_tokens, hidden_size, dtype, seed, layer, add, offset):
    wide = tensor(num_tokens, 2 * hidden_size, seed=seed, dtype=dtype) + offset
    x, residual = wide.chunk(2, 1)
    before = x.clone()
    weight, bias = tensor(2, hidden_size, seed=seed + 1, dtype=dtype)
    arguments = (weight, bias, 1e-5) if layer else (weight, 1e-5)
    name = "norms:add_layer_norm" if layer else "norms:add_rms_norm"

    normed, summed = interpreted(name, x, residual if add else None, *arguments)

    assert torch.equal(x, before), "the caller may still need it"
    assert normed.dtype == summed.dtype == dtype
    assert_close(summed, (x.double() + residual.double()) if add else x.double())
    exact = summed.double(), (hidden_size,), weight.double()
    if layer:
        assert_close(normed, F.layer_norm(*exact, bias.double(), 1e-5))
    else:
        assert_close(normed, F.rms_norm(*exact, 1e-5))


def test_the_variance_of_rows_far_from_zero(interpreted):
    x = 1000.0 + tensor(2, 768, seed=0, dtype=torch.float32)
    ones, zeros = torch.ones(768), torch.zeros(768)
    normed, _ = interpreted("norms:add_layer_norm", x, None, ones, zeros, 1e-5)
    expected = F.layer_norm(x.double(), (768,))
    torch.testing.assert_close(normed.double(), expected, rtol=1e-3, atol=1e-3)


@given(num_tokens=st.integers(1, 3), size=sizes, dtype=dtypes, seed=st.integers(0, 999))
@quick
def test_silu_and_mul(interpreted, num_tokens, size, dtype, seed):
    gate_up = tensor(num_tokens, 2 * size, seed=seed, dtype=dtype)
    gate, up = gate_up.double().chunk(2, 1)
    assert_close(interpreted("activation:silu_and_mul", gate_up), F.silu(gate) * up)


def test_silu_and_mul_of_more_than_a_program_holds(interpreted):
    gate_up = tensor(2, 2 * 1100, seed=0, dtype=torch.float32)
    gate, up = gate_up.double().chunk(2, 1)
    assert_close(interpreted("activation:silu_and_mul", gate_up), F.silu(gate) * up)


@pytest.mark.parametrize("gate", [-1e4, 1e4])
def test_silu_of_extremes(interpreted, gate):
    out = interpreted("activation:silu_and_mul", torch.tensor([[gate, 2.0]]))
    assert out.item() == (2 * gate if gate > 0 else 0)

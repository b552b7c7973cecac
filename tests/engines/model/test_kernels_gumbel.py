"""The sampler draws from the softmax, and its two forms draw the same."""

import pytest
import torch
from examples import examples
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from scipy.stats import chi2_contingency, chisquare
from torch.utils._python_dispatch import TorchDispatchMode

from engines.builtin.model.gumbel_reference import (
    GOLDEN_32,
    POSITION_FACTOR,
    gumbel_noise,
    row_keys,
    sample_reference,
    seed_key,
)

pytestmark = pytest.mark.slow

KERNEL = "gumbel:sample"
MODULUS = 1 << 32


def indices(count: int, start: int = 0) -> torch.Tensor:
    return torch.arange(start, start + count)


def random_logits(*size: int, seed: int = 0) -> torch.Tensor:
    return 3 * torch.randn(*size, generator=torch.Generator().manual_seed(seed))


def draws(temperature: float, *, requests: int, positions: int, logits=(2.0, 0.0, 1.0, -1.0, 1.5)):
    """int64 ``[requests, positions]``."""
    request = indices(requests).repeat_interleave(positions)
    position = indices(positions).repeat(requests)
    row = torch.tensor(logits).expand(len(request), -1)
    sampled = sample_reference(row, temperature, 11, request, position)
    return sampled.long().view(requests, positions)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
@pytest.mark.parametrize(("requests", "positions"), [(20_000, 1), (1, 20_000), (150, 150)])
def test_tokens_follow_the_softmax(temperature, requests, positions):
    counts = draws(temperature, requests=requests, positions=positions).flatten().bincount()
    expected = (torch.tensor([2.0, 0.0, 1.0, -1.0, 1.5]).double() / temperature).softmax(0)
    p = chisquare(counts.numpy(), (expected * counts.sum()).numpy()).pvalue
    assert p > 1e-3, "a seed is given: this draw does not change"


@pytest.mark.parametrize("along", ["requests", "positions"])
def test_neighbours_are_independent(along):
    tokens = draws(1.0, requests=150, positions=150)
    tokens = tokens if along == "positions" else tokens.T
    pairs = (5 * tokens[:, :-1] + tokens[:, 1:]).flatten().bincount(minlength=25)
    assert chi2_contingency(pairs.view(5, 5).numpy()).pvalue > 1e-3


def test_another_seed_request_or_position_draws_anew():
    logits = torch.zeros(1, 1 << 16)
    rows = [(1, 5, 7), (2, 5, 7), (1, 6, 7), (1, 5, 8), (1, 7, 5), (1 << 32, 5, 7), (0, 0, 0)]
    tokens = [
        sample_reference(logits, 1.0, seed, *torch.tensor([[request], [position]])).item()
        for seed, request, position in rows
    ]
    assert len(set(tokens)) == len(rows)


def test_the_key_of_a_seed_takes_no_tensor():
    """It is asked for in every step that is not replayed."""

    class NoTensors(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            raise AssertionError(func)

    with NoTensors():
        assert [seed_key(seed) for seed in (0, 7, 2**32, 2**64 - 1)] == [
            0xAA3E5B61,
            0x2703DE93,
            0x70F6C6D8,
            0x31E0D324,
        ]


@given(
    num_rows=st.integers(1, 3),
    vocab_size=st.sampled_from([1, 5, 2048, 2049, 5000]),
    temperature=st.sampled_from([0.0, 0.3, 1.0, 2.5]),
    seed=st.integers(0, 2**64 - 1),
    start=st.sampled_from([0, 1, 1000, 2**31, 2**33 + 5]),
    dtype=st.sampled_from([torch.float32, torch.bfloat16, torch.float16]),
)
@examples(20, [HealthCheck.too_slow])
def test_kernel_and_reference_draw_the_same(
    interpreted, num_rows, vocab_size, temperature, seed, start, dtype
):
    padded = random_logits(num_rows, vocab_size + 3, seed=seed % 1000).to(dtype)
    arguments = temperature, seed, indices(num_rows, start), indices(num_rows, start + 17)
    logits = padded[:, :vocab_size]
    tokens = interpreted(KERNEL, logits, *arguments)
    assert tokens.dtype == torch.int32
    assert tokens.tolist() == sample_reference(logits, *arguments).tolist()


def both(interpreted, logits, *arguments):
    """A row's token, the same from kernel and reference."""
    reference = sample_reference(logits, *arguments)
    assert interpreted(KERNEL, logits, *arguments).tolist() == reference.tolist()
    return reference.tolist()


def test_greedy_takes_the_first_of_the_largest(interpreted):
    logits = torch.zeros(2, 5000)
    logits[0, [300, 2047, 2048, 4999]] = 4.0
    zeros = indices(2) * 0
    assert both(interpreted, logits, 0.0, 1, zeros, zeros) == [300, 0]
    assert logits.argmax(1).tolist() == [300, 0]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_tokens_ruled_out_are_never_drawn(interpreted, temperature):
    logits = torch.full((40, 2100), float("-inf"))
    logits[:, [17, 2090]] = 0.0
    drawn = both(interpreted, logits, temperature, 5, indices(40), indices(40))
    assert set(drawn) == ({17, 2090} if temperature else {17})


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_no_token_beyond_the_vocabulary_from_broken_logits(interpreted, temperature):
    logits = torch.full((3, 2100), float("nan"))
    logits[1] = float("-inf")
    logits[2, 2099] = 0.0
    zeros = indices(3)
    assert both(interpreted, logits, temperature, 5, zeros, zeros) == [0, 0, 2099]


def unmixed(h: int) -> int:
    """What `_fmix32` maps to ``h``: every step of it can be undone."""
    h ^= h >> 16
    h = h * pow(0xC2B2AE35, -1, MODULUS) % MODULUS
    h ^= h >> 13 ^ h >> 26
    h = h * pow(0x85EBCA6B, -1, MODULUS) % MODULUS
    return h ^ h >> 16


def position_whose_hash_is(wanted: int, token: int, seed: int) -> int:
    """The position of request 0 at which the token's noise comes from the bits ``wanted``."""
    key = (unmixed(wanted) - token * GOLDEN_32) % MODULUS
    request = unmixed_request(seed)
    return (unmixed(key) ^ request) * pow(POSITION_FACTOR, -1, MODULUS) % MODULUS


def unmixed_request(seed: int) -> int:
    """Request 0's key before its position is mixed in."""
    return unmixed(int(row_keys(seed, indices(1), indices(1))[0]))


@pytest.mark.parametrize(("bits", "noise"), [(MODULUS - 1, 16.635), (0, -2.8115)])
def test_the_most_extreme_noise_is_finite(interpreted, bits, noise):
    place = torch.tensor([position_whose_hash_is(bits, token=3, seed=9)])
    drawn = gumbel_noise(row_keys(9, indices(1), place), 5)[0]
    assert drawn[3].item() == pytest.approx(noise, abs=1e-3)
    logits = torch.zeros(1, 5)
    logits[0, 2] = 30.0
    assert both(interpreted, logits, 1.0, 9, indices(1), place) == [2]
    assert both(interpreted, 0 * logits, 1.0, 9, indices(1), place) == [int(drawn.argmax())]
    logits[0, 3] = 60.0
    assert both(interpreted, logits, 1.0, 9, indices(1), place) == [3]

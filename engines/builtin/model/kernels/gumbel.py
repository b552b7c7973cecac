"""Sampling on the device without a word to the host; `gumbel_reference` says what is drawn."""
# ruff: noqa: N803
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

import torch
import triton
import triton.language as tl
from torch import Tensor

from engines.builtin.model.gumbel_reference import seed_key

_BLOCK = 2048


def sample(
    logits: Tensor, temperature: float, seed: int, request_index: Tensor, position: Tensor
) -> Tensor:
    """int32 ``[N]``, the tokens of `gumbel_reference.sample_reference`.

    ``logits`` of any float type ``[N, vocab_size]``, their last dimension contiguous. In a CUDA
    graph ``temperature`` and ``seed`` stay what they were at the capture.
    """
    num_rows, vocab_size = logits.shape
    num_parts = triton.cdiv(vocab_size, _BLOCK)
    shape, device = (num_rows, num_parts), logits.device
    best = torch.empty(shape, dtype=torch.float32, device=device)
    best_id = torch.empty(shape, dtype=torch.int32, device=device)
    tokens = torch.empty(num_rows, dtype=torch.int32, device=device)
    key = seed_key(seed)
    _best_of_part[(num_parts, num_rows)](
        logits,
        best,
        best_id,
        request_index,
        position,
        logits.stride(0),
        vocab_size,
        1.0 / temperature if temperature else 1.0,
        key - (1 << 32) if key >> 31 else key,  # the same bits, int32 whatever the seed
        NOISE=temperature != 0,
        BLOCK=_BLOCK,
        num_warps=4,
    )
    _best_of_row[(num_rows,)](
        best, best_id, tokens, num_parts, PADDED=triton.next_power_of_2(num_parts), num_warps=1
    )
    return tokens


@triton.jit
def _fmix32(h):
    h = h ^ (h >> 16)
    h = h * 0x85EBCA6B
    h = h ^ (h >> 13)
    h = h * 0xC2B2AE35
    return h ^ (h >> 16)


@triton.jit(
    do_not_specialize=["seed"], do_not_specialize_on_alignment=["request_index", "position"]
)
def _best_of_part(
    logits,
    best,
    best_id,
    request_index,
    position,
    stride,
    vocab_size,
    inverse_temperature,
    seed,
    NOISE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    part = tl.program_id(0)
    row = tl.program_id(1).to(tl.int64)
    token = part * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(logits + row * stride + token, mask=token < vocab_size, other=float("-inf"))
    x = x.to(tl.float32)
    if NOISE:
        request = tl.load(request_index + row).to(tl.uint32) * 0x9E3779B1
        place = tl.load(position + row).to(tl.uint32) * 0x85EBCA77
        key = _fmix32(_fmix32(seed.to(tl.uint32) ^ request) ^ place)
        bits = _fmix32(key + token.to(tl.uint32) * 0x9E3779B9) >> 9
        # Of 24 bits the last + 0.5 would round to 1, whose noise is infinite; of 23 it is exact.
        uniform = (bits.to(tl.float32) + 0.5) * (1.0 / 8388608.0)
        x = x * inverse_temperature - tl.log(-tl.log(uniform))
    # A NaN compares as neither more nor less, and could let a padding lane through.
    x = tl.where(x == x, x, float("-inf"))  # noqa: PLR0124
    top, index = tl.max(x, axis=0, return_indices=True)
    place_of_part = row * tl.num_programs(0) + part
    tl.store(best + place_of_part, top)
    tl.store(best_id + place_of_part, part * BLOCK + index)


@triton.jit
def _best_of_row(best, best_id, tokens, num_parts, PADDED: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    part = tl.arange(0, PADDED)
    tops = tl.load(best + row * num_parts + part, mask=part < num_parts, other=float("-inf"))
    index = tl.argmax(tops, axis=0)
    tl.store(tokens + row, tl.load(best_id + row * num_parts + index))

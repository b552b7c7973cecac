"""A residual added and the sum normed, one row a program."""
# ruff: noqa: N803
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

import torch
import triton
import triton.language as tl
from torch import Tensor


def add_layer_norm(
    x: Tensor, residual: Tensor | None, weight: Tensor, bias: Tensor, eps: float
) -> tuple[Tensor, Tensor]:
    """`Ops.add_layer_norm`: new tensors, but without a residual the sum is ``x`` itself.

    The sum is rounded to the type of ``x`` before it is normed; statistics are float32.
    """
    return _add_norm(x, residual, weight, bias, eps)


def add_rms_norm(
    x: Tensor, residual: Tensor | None, weight: Tensor, eps: float
) -> tuple[Tensor, Tensor]:
    """`Ops.add_rms_norm`, as `add_layer_norm`."""
    return _add_norm(x, residual, weight, None, eps)


def _add_norm(
    x: Tensor, residual: Tensor | None, weight: Tensor, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor]:
    num_tokens, hidden_size = x.shape
    normed = torch.empty((num_tokens, hidden_size), dtype=x.dtype, device=x.device)
    summed = x if residual is None else torch.empty_like(normed)
    padded = triton.next_power_of_2(hidden_size)
    _norm_rows[(num_tokens,)](
        x,
        x if residual is None else residual,
        weight,
        weight if bias is None else bias,
        summed,
        normed,
        eps,
        x.stride(0),
        x.stride(0) if residual is None else residual.stride(0),
        HIDDEN_SIZE=hidden_size,
        PADDED=padded,
        ADD=residual is not None,
        LAYER=bias is not None,
        num_warps=min(16, max(1, padded // 256)),
    )
    return normed, summed


@triton.jit
def _norm_rows(
    x,
    residual,
    weight,
    bias,
    summed,
    normed,
    eps,
    stride_x,
    stride_residual,
    HIDDEN_SIZE: tl.constexpr,
    PADDED: tl.constexpr,
    ADD: tl.constexpr,
    LAYER: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, PADDED)
    mask = i < HIDDEN_SIZE
    h = tl.load(x + row * stride_x + i, mask=mask, other=0.0).to(tl.float32)
    if ADD:
        h = h + tl.load(residual + row * stride_residual + i, mask=mask, other=0.0).to(tl.float32)
        rounded = h.to(summed.dtype.element_ty)
        tl.store(summed + row * HIDDEN_SIZE + i, rounded, mask=mask)
        h = rounded.to(tl.float32)
    if LAYER:
        h = tl.where(mask, h - tl.sum(h, 0) / HIDDEN_SIZE, 0.0)
    h = h * tl.rsqrt(tl.sum(h * h, 0) / HIDDEN_SIZE + eps)
    h = h * tl.load(weight + i, mask=mask, other=0.0).to(tl.float32)
    if LAYER:
        h = h + tl.load(bias + i, mask=mask, other=0.0).to(tl.float32)
    tl.store(normed + row * HIDDEN_SIZE + i, h, mask=mask)

"""The activation of SwiGLU (Shazeer 2020)."""
# ruff: noqa: N803
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 1024


def silu_and_mul(gate_up: Tensor) -> Tensor:
    """`Ops.silu_and_mul`, in float32, rounded once; the last dimension is contiguous."""
    num_tokens, width = gate_up.shape
    size = width // 2
    out = torch.empty((num_tokens, size), dtype=gate_up.dtype, device=gate_up.device)
    grid = (num_tokens, triton.cdiv(size, _BLOCK))
    _silu_and_mul[grid](gate_up, out, gate_up.stride(0), size, BLOCK=_BLOCK, num_warps=4)
    return out


@triton.jit
def _silu_and_mul(gate_up, out, stride, size, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = i < size
    gate = tl.load(gate_up + row * stride + i, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(gate_up + row * stride + size + i, mask=mask, other=0.0).to(tl.float32)
    tl.store(out + row * size + i, gate / (1.0 + tl.exp(-gate)) * up, mask=mask)

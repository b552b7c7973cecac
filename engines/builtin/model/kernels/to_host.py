"""A step's tokens to pinned memory, by a kernel: a graph may end with it, whichever turn it is."""
# ruff: noqa: N803
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 1024


def to_host(tokens: Tensor, ring: Tensor, turn: Tensor) -> None:
    """`Ops.to_host`; ``tokens`` and ``ring`` are contiguous."""
    num_tokens = tokens.numel()
    _to_host[(triton.cdiv(num_tokens, _BLOCK),)](
        tokens, ring, turn, num_tokens, len(ring), ring.stride(0), BLOCK=_BLOCK, num_warps=4
    )


@triton.jit(do_not_specialize=["num_tokens", "depth", "stride"])
def _to_host(tokens, ring, turn, num_tokens, depth, stride, BLOCK: tl.constexpr):
    token = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = token < num_tokens
    begin = tl.load(turn) % depth * stride
    tl.store(ring + begin + token, tl.load(tokens + token, mask=mask), mask=mask)

"""What decoding and prefill share: a tile of keys and values goes into an online softmax."""
# ruff: noqa: N803
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

import torch
import triton
import triton.language as tl

_DOT_TYPES = {torch.float16: tl.float16, torch.bfloat16: tl.bfloat16, torch.float32: tl.float32}


def dot_type(dtype: torch.dtype) -> tl.dtype:
    """The type in which tensors of this one are multiplied; sums are float32."""
    # The interpreter keeps bfloat16 as its bits in uint16 and would multiply those.
    return tl.float32 if triton.knobs.runtime.interpret else _DOT_TYPES[dtype]


@triton.jit
def attend(
    q,
    keys,
    values,
    table,
    positions,
    cached,
    visible,
    stride_block,
    scale,
    top,
    total,
    acc,
    HEAD_DIM: tl.constexpr,
    HEAD_DIM_PADDED: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    DOT: tl.constexpr,
):
    """Rows ``q`` over the keys at ``positions`` of one request: the next ``top, total, acc``.

    ``keys`` and ``values`` point at the head's part of block 0, ``table`` at the request's row.
    ``cached [keys]``: which positions to load; ``visible [rows or 1, keys]``: who sees which.
    Online softmax (Milakov and Gimelshein 2018) in base 2, so ``scale`` has a factor log2(e);
    every row must see a key of the first tile, or its maximum stays at -inf and yields NaN.
    """
    block = tl.load(table + positions // BLOCK_SIZE, mask=cached, other=0)
    # A layer's cache may have more than 2**31 elements.
    start = block.to(tl.int64) * stride_block + positions % BLOCK_SIZE * HEAD_DIM
    d = tl.arange(0, HEAD_DIM_PADDED)
    tile = start[:, None] + d[None, :]
    mask = cached[:, None]
    if HEAD_DIM < HEAD_DIM_PADDED:
        mask = mask & (d < HEAD_DIM)[None, :]
    k = tl.load(keys + tile, mask=mask, other=0.0).to(DOT)
    scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
    scores = tl.where(visible, scores, float("-inf"))
    next_top = tl.maximum(top, tl.max(scores, 1))
    weights = tl.exp2(scores - next_top[:, None])
    decay = tl.exp2(top - next_top)
    v = tl.load(values + tile, mask=mask, other=0.0).to(DOT)
    acc = tl.dot(weights.to(DOT), v, acc * decay[:, None], input_precision="ieee")
    return next_top, total * decay + tl.sum(weights, 1), acc

"""A layer's self-attention: q, k and v in one product, the paged cache, the way out."""

import torch
from torch import Tensor

from engines.builtin.model import ForwardBatch, HeadNorms, Ops, Parallel
from engines.builtin.model.config import ModelConfig
from engines.builtin.model.linear import column_parallel, row_parallel
from engines.builtin.model.weights import Weights


class SelfAttention:
    """A rank's share of the heads of layer ``name``.

    ``out`` is what its family calls the output projection. ``cos_sin`` as `Ops` has it.
    """

    def __init__(
        self,
        config: ModelConfig,
        weights: Weights,
        ops: Ops,
        parallel: Parallel,
        *,
        name: str,
        out: str,
        cos_sin: Tensor | None,
    ) -> None:
        q_size = config.num_attention_heads * config.head_dim
        kv_size = config.num_key_value_heads * config.head_dim
        self._qkv = column_parallel(
            weights,
            parallel,
            {f"{name}.q_proj": q_size, f"{name}.k_proj": kv_size, f"{name}.v_proj": kv_size},
            in_features=config.hidden_size,
            bias=config.qkv_bias,
        )
        self._out = row_parallel(
            weights,
            parallel,
            f"{name}.{out}",
            out_features=config.hidden_size,
            in_features=q_size,
            bias=config.attention_out_bias,
        )
        self._norms: HeadNorms | None = None
        if config.head_norms:
            q_norm, k_norm = (
                weights.take(f"{name}.{which}_norm.weight", (config.head_dim,)) for which in "qk"
            )
            self._norms = HeadNorms(q_norm, k_norm, config.norm_eps)
        num_kv_heads = config.num_key_value_heads // parallel.size
        self._heads = [config.num_attention_heads // parallel.size, num_kv_heads, num_kv_heads]
        self._head_dim = config.head_dim
        self._scale = config.head_dim**-0.5
        self._cos_sin = cos_sin
        self._ops = ops
        self._parallel = parallel

    def __call__(self, x: Tensor, cache: Tensor, batch: ForwardBatch) -> Tensor:
        """``[T, hidden]`` for ``[T, hidden]``, summed over the ranks."""
        qkv = self._qkv(x).view(x.shape[0], -1, self._head_dim)
        q, k, v = torch.split(qkv, self._heads, dim=1)
        self._ops.rotate_and_cache(q, k, v, self._norms, self._cos_sin, cache, batch)
        attended = self._ops.attention(q, cache, batch, self._scale)
        return self._parallel.all_reduce(self._out(attended.flatten(1)))

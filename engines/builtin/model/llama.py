"""Llama (Touvron et al. 2023): rotary positions, RMS norm, SwiGLU, grouped-query attention.

Mistral, Qwen2 and Qwen3 are the same but for biases and norms of heads, which a config says.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from engines.builtin.model import ForwardBatch, Ops, Parallel
from engines.builtin.model.attention import SelfAttention
from engines.builtin.model.config import ModelConfig
from engines.builtin.model.linear import Linear, LMHead, column_parallel, row_parallel
from engines.builtin.model.weights import Weights


def rotary_table(config: ModelConfig, device: torch.device) -> Tensor:
    """Cosines and sines float32 ``[max_position_embeddings, 2, head_dim / 2]`` (Su et al. 2021).

    Pair i turns by theta^(-2i / head_dim) a position. With Llama 3's scaling, wavelengths above
    ``original_max_position_embeddings / low_freq_factor`` become ``factor`` times as long, those
    below ``original / high_freq_factor`` stay, and between the two the frequencies are mixed.
    """
    pairs = torch.arange(0, config.head_dim, 2, dtype=torch.float32, device=device)
    frequency = 1.0 / config.rope_theta ** (pairs / config.head_dim)
    scaling = config.rope_scaling
    if scaling is not None:
        turns = scaling.original_max_position_embeddings * frequency / (2 * math.pi)
        low, high = scaling.low_freq_factor, scaling.high_freq_factor
        kept = ((turns - low) / (high - low)).clamp(0, 1)
        frequency = kept * frequency + (1 - kept) * frequency / scaling.factor
    positions = torch.arange(config.max_position_embeddings, dtype=torch.float32, device=device)
    angles = torch.outer(positions, frequency)
    return torch.stack((angles.cos(), angles.sin()), dim=1)


class _Layer(NamedTuple):
    attention_norm: Tensor
    attention: SelfAttention
    mlp_norm: Tensor
    gate_up: Linear
    down: Linear


class Llama:
    """Raises ValueError where the ranks cannot share it evenly."""

    def __init__(self, config: ModelConfig, weights: Weights, ops: Ops, parallel: Parallel) -> None:
        config.check_tensor_parallel(parallel.size)
        hidden_size = config.hidden_size
        self._ops, self._parallel, self._eps = ops, parallel, config.norm_eps
        self._embed_tokens = weights.take(
            "model.embed_tokens.weight", (config.vocab_size, hidden_size)
        )
        cos_sin = rotary_table(config, self._embed_tokens.device)

        def layer(name: str) -> _Layer:
            inner, bias = config.intermediate_size, config.mlp_bias
            gate_up = {f"{name}.mlp.gate_proj": inner, f"{name}.mlp.up_proj": inner}
            return _Layer(
                weights.take(f"{name}.input_layernorm.weight", (hidden_size,)),
                SelfAttention(
                    config,
                    weights,
                    ops,
                    parallel,
                    name=f"{name}.self_attn",
                    out="o_proj",
                    cos_sin=cos_sin,
                ),
                weights.take(f"{name}.post_attention_layernorm.weight", (hidden_size,)),
                column_parallel(weights, parallel, gate_up, in_features=hidden_size, bias=bias),
                row_parallel(
                    weights,
                    parallel,
                    f"{name}.mlp.down_proj",
                    out_features=hidden_size,
                    in_features=inner,
                    bias=bias,
                ),
            )

        self._layers = [layer(f"model.layers.{i}") for i in range(config.num_hidden_layers)]
        self._norm = weights.take("model.norm.weight", (hidden_size,))
        self.logits = LMHead(config, weights, parallel, self._embed_tokens)

    def forward(self, token_ids: Tensor, batch: ForwardBatch, caches: list[Tensor]) -> Tensor:
        """The last hidden states ``[T, hidden]``, normed, for ``token_ids`` int64 ``[T]``."""
        ops = self._ops
        x = F.embedding(token_ids, self._embed_tokens)
        residual: Tensor | None = None
        for layer, cache in zip(self._layers, caches, strict=True):
            x, residual = ops.add_rms_norm(x, residual, layer.attention_norm, self._eps)
            x = layer.attention(x, cache, batch)
            x, residual = ops.add_rms_norm(x, residual, layer.mlp_norm, self._eps)
            x = self._parallel.all_reduce(layer.down(ops.silu_and_mul(layer.gate_up(x))))
        return ops.add_rms_norm(x, residual, self._norm, self._eps)[0]

"""OPT (Zhang et al. 2022): learned positions, layer norm before each block, ReLU."""

from typing import NamedTuple

from torch import Tensor
from torch.nn import functional as F

from engines.builtin.model import ForwardBatch, Ops, Parallel
from engines.builtin.model.attention import SelfAttention
from engines.builtin.model.config import ModelConfig
from engines.builtin.model.linear import Linear, LMHead, column_parallel, row_parallel
from engines.builtin.model.weights import Weights


class _Norm(NamedTuple):
    weight: Tensor
    bias: Tensor


class _Layer(NamedTuple):
    attention_norm: _Norm
    attention: SelfAttention
    mlp_norm: _Norm
    fc1: Linear
    fc2: Linear


class OPT:
    """``OPTForCausalLM``. Raises ValueError where the ranks cannot share it evenly."""

    def __init__(self, config: ModelConfig, weights: Weights, ops: Ops, parallel: Parallel) -> None:
        config.check_tensor_parallel(parallel.size)
        hidden_size = config.hidden_size
        self._ops, self._parallel, self._eps = ops, parallel, config.norm_eps
        self._embed_tokens = weights.take(
            "model.decoder.embed_tokens.weight", (config.vocab_size, hidden_size)
        )
        self._embed_positions = weights.take(
            "model.decoder.embed_positions.weight", (config.num_learned_positions, hidden_size)
        )
        self._offset = config.num_learned_positions - config.max_position_embeddings

        def norm(name: str) -> _Norm:
            shape = (hidden_size,)
            return _Norm(weights.take(f"{name}.weight", shape), weights.take(f"{name}.bias", shape))

        def layer(name: str) -> _Layer:
            inner, bias = config.intermediate_size, config.mlp_bias
            return _Layer(
                norm(f"{name}.self_attn_layer_norm"),
                SelfAttention(
                    config,
                    weights,
                    ops,
                    parallel,
                    name=f"{name}.self_attn",
                    out="out_proj",
                    cos_sin=None,
                ),
                norm(f"{name}.final_layer_norm"),
                column_parallel(
                    weights, parallel, {f"{name}.fc1": inner}, in_features=hidden_size, bias=bias
                ),
                row_parallel(
                    weights,
                    parallel,
                    f"{name}.fc2",
                    out_features=hidden_size,
                    in_features=inner,
                    bias=bias,
                ),
            )

        self._layers = [layer(f"model.decoder.layers.{i}") for i in range(config.num_hidden_layers)]
        self._final_norm = norm("model.decoder.final_layer_norm")
        self.logits = LMHead(config, weights, parallel, self._embed_tokens)

    def forward(self, token_ids: Tensor, batch: ForwardBatch, caches: list[Tensor]) -> Tensor:
        """The last hidden states ``[T, hidden]``, normed, for ``token_ids`` int64 ``[T]``."""
        add_layer_norm = self._ops.add_layer_norm
        x = F.embedding(token_ids, self._embed_tokens)
        x = x + F.embedding(batch.positions + self._offset, self._embed_positions)
        residual: Tensor | None = None
        for layer, cache in zip(self._layers, caches, strict=True):
            x, residual = add_layer_norm(x, residual, *layer.attention_norm, self._eps)
            x = layer.attention(x, cache, batch)
            x, residual = add_layer_norm(x, residual, *layer.mlp_norm, self._eps)
            x = self._parallel.all_reduce(layer.fc2(layer.fc1.relu(x)))
        return add_layer_norm(x, residual, *self._final_norm, self._eps)[0]

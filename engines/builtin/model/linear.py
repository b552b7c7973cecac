"""Linear layers cut among ranks: by their outputs, by their inputs, by the vocabulary."""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from engines.builtin.model import Parallel
from engines.builtin.model.config import ModelConfig
from engines.builtin.model.weights import Weights, cut


class Linear(NamedTuple):
    """``weight`` ``[out_features, in_features]``, ``bias`` ``[out_features]``."""

    weight: Tensor
    bias: Tensor | None

    def __call__(self, x: Tensor) -> Tensor:
        """``[T, out_features]``."""
        return F.linear(x, self.weight, self.bias)

    def relu(self, x: Tensor) -> Tensor:
        """The same, negative features at 0; with a bias one kernel of cuBLASLt on a GPU."""
        if self.bias is None:
            return torch.relu_(F.linear(x, self.weight))
        return torch._addmm_activation(self.bias, x, self.weight.t())


def column_parallel(
    weights: Weights,
    parallel: Parallel,
    outputs: Mapping[str, int],
    *,
    in_features: int,
    bias: bool,
) -> Linear:
    """Layers of one input as one, ``outputs`` features each: of each a rank's share, in turn.

    Column- then row-parallel layers need one sum over the ranks (Shoeybi et al. 2019, Megatron-LM).
    """
    part = (0, parallel.rank, parallel.size)
    weight = torch.cat(
        [
            weights.take(f"{name}.weight", (features, in_features), part=part)
            for name, features in outputs.items()
        ]
    )
    if not bias:
        return Linear(weight, None)
    biases = [
        weights.take(f"{name}.bias", (features,), part=part) for name, features in outputs.items()
    ]
    return Linear(weight, torch.cat(biases))


def row_parallel(
    weights: Weights,
    parallel: Parallel,
    name: str,
    *,
    out_features: int,
    in_features: int,
    bias: bool,
) -> Linear:
    """A rank's share of the inputs. The ranks' results are to be summed, so one has the bias."""
    part = (1, parallel.rank, parallel.size)
    weight = weights.take(f"{name}.weight", (out_features, in_features), part=part)
    has_bias = bias and parallel.rank == 0
    return Linear(weight, weights.take(f"{name}.bias", (out_features,)) if has_bias else None)


class LMHead:
    """Logits: of a rank's share of the vocabulary, then of all of it on every rank."""

    def __init__(
        self, config: ModelConfig, weights: Weights, parallel: Parallel, embed_tokens: Tensor
    ) -> None:
        part = (0, parallel.rank, parallel.size)
        if config.tie_word_embeddings:
            self._weight = cut(embed_tokens, part)
        else:
            shape = (config.vocab_size, config.hidden_size)
            self._weight = weights.take("lm_head.weight", shape, part=part)
        self._vocab_size = config.vocab_size
        self._parallel = parallel

    def __call__(self, hidden: Tensor) -> Tensor:
        """``[N, vocab_size]``; its rows may lie further apart than that."""
        logits = self._parallel.all_gather(F.linear(hidden, self._weight))
        return logits[:, : self._vocab_size]

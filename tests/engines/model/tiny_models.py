"""Tiny random models of transformers, saved as it saves them, and requests that run on ours."""

import threading
import warnings
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import torch
from processes import HANG_SECONDS
from torch import Tensor

from engines.builtin.model import ForwardBatch, Model, Parallel
from engines.builtin.model.architectures import build_model
from engines.builtin.model.config import ModelConfig, load_model
from engines.builtin.model.parallel import ONE_RANK
from engines.builtin.model.reference import ReferenceOps
from engines.builtin.model.weights import Weights

CPU = torch.device("cpu")
VOCAB_SIZE = 99  # odd: no number of ranks divides it evenly

OPT = {
    "vocab_size": VOCAB_SIZE,
    "hidden_size": 32,
    "word_embed_proj_dim": 32,
    "ffn_dim": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
}
LLAMA = {
    "vocab_size": VOCAB_SIZE,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "max_position_embeddings": 64,
    "head_dim": 16,
}
# Heads of 16, where 4 of 32 would be 8.
LLAMA_LIKE = LLAMA | {"num_key_value_heads": 2}
# Of the eight wavelengths one is short enough to stay, one is between, six are stretched.
LLAMA3_ROPE = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}

VARIANTS: dict[str, dict[str, Any]] = {
    "opt": OPT,
    "opt-own-head": OPT | {"tie_word_embeddings": False},
    "opt-no-bias": OPT | {"enable_bias": False},
    "llama": LLAMA,
    "llama-gqa": LLAMA | {"num_key_value_heads": 2},
    "llama-mqa-tied": LLAMA | {"num_key_value_heads": 1, "tie_word_embeddings": True},
    "llama-biases": LLAMA | {"attention_bias": True, "mlp_bias": True, "num_key_value_heads": 2},
    "llama3-rope": LLAMA | {"rope_scaling": LLAMA3_ROPE, "num_key_value_heads": 2},
    "mistral": LLAMA_LIKE | {"sliding_window": None, "rope_theta": 1e6},
    "mistral-tied": LLAMA_LIKE | {"sliding_window": 64, "tie_word_embeddings": True},
    "qwen2": LLAMA_LIKE,
    "qwen2-tied": LLAMA_LIKE | {"num_key_value_heads": 4, "tie_word_embeddings": True},
    "qwen3": LLAMA_LIKE | {"rope_theta": 1e6},
    "qwen3-tied": LLAMA_LIKE | {"tie_word_embeddings": True},
    "qwen3-biases": LLAMA_LIKE | {"attention_bias": True},
}
FAMILIES = {
    "opt": "OPT",
    "llama": "Llama",
    "mistral": "Mistral",
    "qwen2": "Qwen2",
    "qwen3": "Qwen3",
}
"""What transformers' classes begin with, by what a variant's name begins with."""


class Saved(NamedTuple):
    """``expected``: the model of transformers; ``folder``: where it was saved."""

    expected: Any
    folder: Path

    def logits(self, token_ids: Sequence[int]) -> Tensor:
        """``[len(token_ids), vocab_size]``, computed at once and without a cache."""
        with torch.inference_mode():
            output = self.expected(torch.tensor([token_ids]), use_cache=False)
        return output.logits[0]

    def greedy(self, prompt: Sequence[int], count: int) -> list[int]:
        """The likeliest token after each, by computing everything anew."""
        tokens = list(prompt)
        for _ in range(count):
            tokens.append(int(self.logits(tokens)[-1].argmax()))
        return tokens[len(prompt) :]


def save(variant: str, folder: Path, **how: Any) -> Saved:
    """A model whose every weight matters: transformers' own would be nearly blind to position."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a dependency warns of as it is loaded is its own
        import transformers
    # A progress bar brings a thread that stays, and what it allocates others would count as theirs.
    transformers.utils.logging.disable_progress_bar()
    kind = next(kind for begin, kind in FAMILIES.items() if variant.startswith(begin))
    config = getattr(transformers, f"{kind}Config")(**VARIANTS[variant])
    model = getattr(transformers, f"{kind}ForCausalLM")(config).eval()
    generator = torch.Generator().manual_seed(len(variant))
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.normal_(0, 0.3, generator=generator)
            if "norm" in name and name.endswith("weight"):
                weight.add_(1)
    model.save_pretrained(folder, **how)
    return Saved(model, folder)


def build(
    folder: Path, parallel: Parallel = ONE_RANK, dtype: torch.dtype = torch.float32
) -> tuple[Model, ModelConfig]:
    """Our model of what is saved there, on the CPU."""
    source = load_model(str(folder))
    weights = Weights(source, CPU, dtype, seed=0)
    return build_model(source.config, weights, ReferenceOps(), parallel), source.config


class Requests:
    """Requests over a cache of shuffled blocks, full of NaN where nothing was written."""

    def __init__(
        self,
        model: Model,
        config: ModelConfig,
        *,
        block_size: int = 4,
        num_blocks: int = 64,
        size: int = 1,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        shape = (2, num_blocks, config.num_key_value_heads // size, block_size, config.head_dim)
        self.caches = [
            torch.full(shape, torch.nan, dtype=dtype) for _ in range(config.num_hidden_layers)
        ]
        self._model, self._block_size = model, block_size
        self._free = list(range(num_blocks))
        Random(0).shuffle(self._free)
        self._blocks: list[list[int]] = []
        self._lengths: list[int] = []

    def add(self, *, prefix_of: int = 0, num_shared_blocks: int = 0) -> int:
        """One more, which begins with blocks that another has computed."""
        shared = self._blocks[prefix_of][:num_shared_blocks] if num_shared_blocks else []
        self._blocks.append(list(shared))
        self._lengths.append(num_shared_blocks * self._block_size)
        return len(self._blocks) - 1

    def step(self, chunks: dict[int, Sequence[int]]) -> dict[int, Tensor]:
        """Compute the next tokens of some; the logits after each of them ``[n, vocab_size]``."""
        positions, slots, seq_lens, query_start = [], [], [], [0]
        for request, chunk in chunks.items():
            blocks, begin = self._blocks[request], self._lengths[request]
            end = begin + len(chunk)
            while len(blocks) * self._block_size < end:
                blocks.append(self._free.pop())
            positions += range(begin, end)
            slots += [
                blocks[at // self._block_size] * self._block_size + at % self._block_size
                for at in range(begin, end)
            ]
            seq_lens.append(end)
            query_start.append(query_start[-1] + len(chunk))
            self._lengths[request] = end
        num_rows = len(self._blocks)
        table = torch.full((num_rows, max(map(len, self._blocks))), -1, dtype=torch.int32)
        for request, blocks in enumerate(self._blocks):
            table[num_rows - 1 - request, : len(blocks)] = torch.tensor(blocks)
        batch = ForwardBatch(
            torch.tensor(positions),
            torch.tensor(slots),
            torch.tensor([num_rows - 1 - request for request in chunks], dtype=torch.int32),
            torch.tensor(seq_lens, dtype=torch.int32),
            torch.tensor(query_start, dtype=torch.int32),
            table,
            max(map(len, chunks.values())),
            max(seq_lens),
        )
        token_ids = torch.tensor([token for chunk in chunks.values() for token in chunk])
        with torch.inference_mode():
            logits = self._model.logits(self._model.forward(token_ids, batch, self.caches))
        lengths = [len(chunk) for chunk in chunks.values()]
        return dict(zip(chunks, logits.split(lengths), strict=True))


class ThreadRanks:
    """Ranks that are threads of this process."""

    def __init__(self, size: int) -> None:
        self._barrier = threading.Barrier(size, timeout=HANG_SECONDS)
        self._given: list[Any] = [None] * size
        self.ranks = [ThreadRank(self, rank, size) for rank in range(size)]

    def exchange(self, rank: int, x: Tensor) -> list[Tensor]:
        self._given[rank] = x
        self._barrier.wait()
        given = list(self._given)
        self._barrier.wait()
        return given


class ThreadRank:
    def __init__(self, ranks: ThreadRanks, rank: int, size: int) -> None:
        self._ranks, self.rank, self.size = ranks, rank, size

    def all_reduce(self, x: Tensor) -> Tensor:
        return torch.stack(self._ranks.exchange(self.rank, x)).sum(0)

    def all_gather(self, x: Tensor) -> Tensor:
        return torch.cat(self._ranks.exchange(self.rank, x), -1)

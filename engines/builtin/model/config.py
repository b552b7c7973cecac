"""What a model is made of, as Hugging Face's ``config.json`` says, and what that costs."""

from pathlib import Path
from typing import NamedTuple

import msgspec

from engines.builtin.model.hf_config import read_fields
from engines.builtin.model.hf_families import Llama3RopeScaling
from engines.model_configs import nearest_models, shipped_folder

_WEIGHTS = ("model.safetensors", "model.safetensors.index.json")


class ModelConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A decoder-only transformer; Hugging Face's names, the same for all families.

    ``num_learned_positions``: rows of the table of positions, 0 where they are rotary.
    ``gated_mlp``: the MLP has a gate beside its up projection. ``qkv_bias``, ``attention_out_bias``
    and ``norm_bias``: the projections to queries, keys and values, the one behind attention, and
    the norms have one. ``head_norms``: each head's queries and keys are normed before rotation.
    ``dtype``: of the weights as published. ``eos_token_ids``: those that end a text.
    """

    architecture: str
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    vocab_size: int
    max_position_embeddings: int
    num_learned_positions: int = 0
    gated_mlp: bool
    qkv_bias: bool
    attention_out_bias: bool
    mlp_bias: bool
    norm_bias: bool
    head_norms: bool = False
    norm_eps: float
    rope_theta: float = 0.0
    rope_scaling: Llama3RopeScaling | None = None
    tie_word_embeddings: bool
    dtype: str
    eos_token_ids: tuple[int, ...]

    @property
    def num_parameters(self) -> int:
        """Embeddings + layers x (matrices + biases + two norms) + the last norm + the LM head,
        which counts with the embedding where the two are tied.
        """
        norm = self.hidden_size * (2 if self.norm_bias else 1)
        heads = self.num_attention_heads + 2 * self.num_key_value_heads
        mlp_bias = (2 if self.gated_mlp else 1) * self.intermediate_size + self.hidden_size
        layer = (
            self._layer_matrices
            + self.qkv_bias * heads * self.head_dim
            + self.attention_out_bias * self.hidden_size
            + self.head_norms * 2 * self.head_dim
            + self.mlp_bias * mlp_bias
            + 2 * norm
        )
        tables = self.vocab_size * (1 if self.tie_word_embeddings else 2)
        tables += self.num_learned_positions
        return tables * self.hidden_size + self.num_hidden_layers * layer + norm

    @property
    def flops_per_token(self) -> int:
        """2 x the parameters that a token's vector is multiplied by: the layers' matrices and the
        LM head, not the embeddings, which are looked up.
        """
        head = self.vocab_size * self.hidden_size
        return 2 * (self.num_hidden_layers * self._layer_matrices + head)

    @property
    def attention_flops_per_token_pair(self) -> int:
        """4 x layers x heads x head_dim: a query with a key, and its weight with a value."""
        return 4 * self.num_hidden_layers * self.num_attention_heads * self.head_dim

    def kv_bytes_per_token(self, itemsize: int) -> int:
        """2 (key and value) x layers x KV heads x head_dim x bytes an element."""
        return 2 * self.num_hidden_layers * self.num_key_value_heads * self.head_dim * itemsize

    @property
    def _layer_matrices(self) -> int:
        # Queries and output are heads wide, keys and values KV heads.
        heads = 2 * (self.num_attention_heads + self.num_key_value_heads)
        projections = (3 if self.gated_mlp else 2) * self.intermediate_size
        return self.hidden_size * (heads * self.head_dim + projections)

    def check_tensor_parallel(self, size: int) -> None:
        """Raise ValueError where so many ranks cannot share the model evenly."""
        for what, count in (
            ("attention heads", self.num_attention_heads),
            ("KV heads", self.num_key_value_heads),
            ("intermediate features", self.intermediate_size),
        ):
            if count % size:
                raise ValueError(
                    f"--axis tensor-parallel={size}: does not divide the model's {count} {what}; "
                    "take a number that does"
                )


class ModelSource(NamedTuple):
    """``folder``: where the weights are; None: random ones."""

    config: ModelConfig
    folder: Path | None


def dtype_name(asked: str, model: ModelConfig, device: str) -> str:
    """What ``--axis dtype`` means: auto is 32 bits on a CPU, else the config's own if it has 16."""
    if asked != "auto":
        return asked
    if device == "cpu":
        return "float32"
    return "float16" if model.dtype == "float16" else "bfloat16"


def load_model(name_or_path: str) -> ModelSource:
    """A shipped config by name or any ``config.json`` by path, both with random weights; or a
    Hugging Face folder with its weights in safetensors.

    Raises ValueError where there is none, or none that the built-in engine can run.
    """
    if shipped := shipped_folder(name_or_path):
        return ModelSource(_config(shipped / "config.json"), None)
    path = Path(name_or_path).expanduser()
    if path.is_file():
        return ModelSource(_config(path), None)
    if not path.is_dir():
        raise ValueError(
            f"unknown model {name_or_path!r}: neither a shipped config nor a folder or file; "
            f"did you mean {nearest_models(name_or_path)}? (A model's folder or a config.json "
            "will do, too.)"
        )
    if not (path / "config.json").is_file():
        raise ValueError(f"model {path}: no config.json in it; give a Hugging Face model's folder")
    if not any((path / name).is_file() for name in _WEIGHTS):
        raise ValueError(
            f"model {path}: neither {' nor '.join(_WEIGHTS)} in it; "
            f"give {path / 'config.json'} alone for random weights"
        )
    return ModelSource(_config(path / "config.json"), path)


def _config(path: Path) -> ModelConfig:
    return ModelConfig(**read_fields(path))

"""Hugging Face's ``config.json``, by family: what is read of it and what cannot be run."""

from pathlib import Path
from typing import Annotated, Any

import msgspec

from engines.regular_file import read_regular

_DTYPES = ("bfloat16", "float16", "float32")
_Count = Annotated[int, msgspec.Meta(ge=1)]


class Llama3RopeScaling(msgspec.Struct, frozen=True):
    """How Llama 3.1 and later stretch the longer wavelengths of their rotary embedding."""

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_max_position_embeddings: int


_TokenId = Annotated[int, msgspec.Meta(lt=2**31)]
_EosTokenId = _TokenId | list[_TokenId] | None


class _Generation(msgspec.Struct):
    """``generation_config.json``."""

    eos_token_id: _EosTokenId = None


class _Architectures(msgspec.Struct):
    architectures: list[str] | None = None


class _File(msgspec.Struct, kw_only=True):
    """What both families have; defaults are those of transformers."""

    hidden_size: _Count
    num_hidden_layers: _Count
    num_attention_heads: _Count
    vocab_size: _Count
    max_position_embeddings: _Count
    eos_token_id: _EosTokenId = None
    dtype: str | None = None
    torch_dtype: str | None = None  # its name before transformers 5
    quantization_config: dict[str, Any] | None = None

    def shared_fields(self) -> dict[str, Any]:
        """Those of `ModelConfig` that are read alike."""
        if self.quantization_config is not None:
            raise ValueError("quantization_config is set, and quantised weights are not supported")
        dtype = self.dtype or self.torch_dtype or "float32"
        _only("dtype", dtype, *_DTYPES)
        return {
            "hidden_size": self.hidden_size,
            "num_hidden_layers": self.num_hidden_layers,
            "num_attention_heads": self.num_attention_heads,
            "vocab_size": self.vocab_size,
            "max_position_embeddings": self.max_position_embeddings,
            "eos_token_ids": _eos_token_ids(self.eos_token_id),
            "dtype": dtype,
        }

    def head_dim_by_division(self) -> int:
        """That of a config which does not say."""
        _divides("num_attention_heads", self.num_attention_heads, "hidden_size", self.hidden_size)
        return self.hidden_size // self.num_attention_heads


class _OPT(_File, kw_only=True):
    ffn_dim: _Count
    word_embed_proj_dim: int | None = None
    do_layer_norm_before: bool = True
    layer_norm_elementwise_affine: bool = True
    remove_final_layer_norm: bool = msgspec.field(name="_remove_final_layer_norm", default=False)
    activation_function: str = "relu"
    enable_bias: bool = True
    tie_word_embeddings: bool = True

    def fields(self) -> dict[str, Any]:
        _only("activation_function", self.activation_function, "relu")
        _only("do_layer_norm_before", self.do_layer_norm_before, True)
        _only("layer_norm_elementwise_affine", self.layer_norm_elementwise_affine, True)
        _only("_remove_final_layer_norm", self.remove_final_layer_norm, False)
        if self.word_embed_proj_dim is not None:
            _only("word_embed_proj_dim", self.word_embed_proj_dim, self.hidden_size)
        return self.shared_fields() | {
            "intermediate_size": self.ffn_dim,
            "num_key_value_heads": self.num_attention_heads,
            "head_dim": _even(self.head_dim_by_division()),
            # The first two rows are left over from fairseq's padding: position p has row p + 2.
            "num_learned_positions": self.max_position_embeddings + 2,
            "gated_mlp": False,
            "attention_bias": self.enable_bias,
            "mlp_bias": self.enable_bias,
            "norm_bias": True,
            "norm_eps": 1e-5,
            "tie_word_embeddings": self.tie_word_embeddings,
        }


class _Llama(_File, kw_only=True):
    intermediate_size: _Count
    num_key_value_heads: _Count | None = None
    head_dim: _Count | None = None
    hidden_act: str = "silu"
    rms_norm_eps: float = 1e-6
    attention_bias: bool = False
    mlp_bias: bool = False
    tie_word_embeddings: bool = False
    rope_parameters: dict[str, Any] | None = None
    rope_theta: float = 10_000.0  # this and the next: before transformers 5
    rope_scaling: dict[str, Any] | None = None

    def fields(self) -> dict[str, Any]:
        _only("hidden_act", self.hidden_act, "silu")
        num_key_value_heads = self.num_key_value_heads or self.num_attention_heads
        _divides(
            "num_key_value_heads",
            num_key_value_heads,
            "num_attention_heads",
            self.num_attention_heads,
        )
        head_dim = _even(self.head_dim or self.head_dim_by_division())
        return self.shared_fields() | {
            "intermediate_size": self.intermediate_size,
            "num_key_value_heads": num_key_value_heads,
            "head_dim": head_dim,
            "gated_mlp": True,
            "attention_bias": self.attention_bias,
            "mlp_bias": self.mlp_bias,
            "norm_bias": False,
            "norm_eps": self.rms_norm_eps,
            "tie_word_embeddings": self.tie_word_embeddings,
            **self._rope(),
        }

    def _rope(self) -> dict[str, Any]:
        given = self.rope_parameters or self.rope_scaling or {}
        kind = given.get("rope_type", given.get("type", "default"))
        _only("rope_type", kind, "default", "llama3")
        theta = msgspec.convert(given.get("rope_theta", self.rope_theta), float)
        scaling = msgspec.convert(given, Llama3RopeScaling) if kind == "llama3" else None
        return {"rope_theta": theta, "rope_scaling": scaling}


_FAMILIES: dict[str, type[_OPT] | type[_Llama]] = {
    "OPTForCausalLM": _OPT,
    "LlamaForCausalLM": _Llama,
}
SUPPORTED = tuple(_FAMILIES)
"""The architectures, as ``config.json`` names them."""


def read_fields(path: Path) -> dict[str, Any]:
    """The fields of `ModelConfig`. Raises ValueError where a config cannot be read or run.

    What ends a text is what a ``generation_config.json`` beside it says, else the config.
    """
    try:
        raw = read_regular(path)
        names = msgspec.json.decode(raw, type=_Architectures).architectures or []
        architecture = next((name for name in names if name in _FAMILIES), None)
        if architecture is None:
            raise ValueError(f"architectures is {names}, and none of them is supported")
        fields = msgspec.json.decode(raw, type=_FAMILIES[architecture]).fields()
        if (eos := _generation(path).eos_token_id) is not None:
            fields["eos_token_ids"] = _eos_token_ids(eos)
    except OSError as error:
        problem = error.strerror or str(error)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        problem = str(error)
    else:
        return fields | {"architecture": architecture}
    raise ValueError(
        f"model config {path}: {problem}; give one of {' or '.join(SUPPORTED)} as Hugging Face "
        "writes it"
    )


def _generation(config: Path) -> _Generation:
    """What stands beside the config."""
    path = config.with_name("generation_config.json")
    if not path.is_file():
        return _Generation()
    try:
        return msgspec.json.decode(read_regular(path), type=_Generation)
    except msgspec.MsgspecError as error:
        raise ValueError(f"{path.name} beside it: {error}") from None


def _eos_token_ids(said: _EosTokenId) -> tuple[int, ...]:
    """One, several or none; a negative id stands for none too."""
    ids = said if isinstance(said, list) else [] if said is None else [said]
    return tuple(token_id for token_id in ids if token_id >= 0)


def _only(key: str, value: object, *supported: object) -> None:
    if value not in supported:
        known = " or ".join(map(repr, supported))
        raise ValueError(f"{key} is {value!r}, and only {known} is supported")


def _even(head_dim: int) -> int:
    if head_dim % 2:
        raise ValueError(f"head_dim {head_dim} is odd, and keys are rotated and cached in pairs")
    return head_dim


def _divides(key: str, divisor: int, of_key: str, number: int) -> None:
    if number % divisor:
        raise ValueError(f"{of_key} {number} is not divisible by {key} {divisor}")

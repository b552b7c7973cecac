"""The families of models: what each one's ``config.json`` says, and what of it cannot be run."""

from typing import Annotated, Any

import msgspec

_DTYPES = ("bfloat16", "float16", "float32")
_Count = Annotated[int, msgspec.Meta(ge=1)]


class Llama3RopeScaling(msgspec.Struct, frozen=True):
    """How Llama 3.1 and later stretch the longer wavelengths of their rotary embedding."""

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_max_position_embeddings: int


_TokenId = Annotated[int, msgspec.Meta(lt=2**31)]
EosTokenId = _TokenId | list[_TokenId] | None


class _File(msgspec.Struct, kw_only=True):
    """What all families have; defaults are those of transformers."""

    hidden_size: _Count
    num_hidden_layers: _Count
    num_attention_heads: _Count
    vocab_size: _Count
    max_position_embeddings: _Count
    eos_token_id: EosTokenId = None
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
            "eos_token_ids": end_of_text_ids(self.eos_token_id),
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
            "qkv_bias": self.enable_bias,
            "attention_out_bias": self.enable_bias,
            "mlp_bias": self.enable_bias,
            "norm_bias": True,
            "norm_eps": 1e-5,
            "tie_word_embeddings": self.tie_word_embeddings,
        }


class _Rotary(_File, kw_only=True):
    """What families have whose layers are Llama's but for biases, norms of heads, windows."""

    intermediate_size: _Count
    num_key_value_heads: _Count | None = None
    head_dim: _Count | None = None
    hidden_act: str = "silu"
    rms_norm_eps: float = 1e-6
    tie_word_embeddings: bool = False
    rope_parameters: dict[str, Any] | None = None
    rope_theta: float = 10_000.0  # this and the next: before transformers 5
    rope_scaling: dict[str, Any] | None = None

    def layer_fields(
        self,
        *,
        qkv_bias: bool = False,
        attention_out_bias: bool = False,
        mlp_bias: bool = False,
        head_norms: bool = False,
    ) -> dict[str, Any]:
        """Those of `ModelConfig`: what is given is the family's, the rest is the file's."""
        _only("hidden_act", self.hidden_act, "silu")
        num_key_value_heads = self.num_key_value_heads or self.num_attention_heads
        _divides(
            "num_key_value_heads",
            num_key_value_heads,
            "num_attention_heads",
            self.num_attention_heads,
        )
        return self.shared_fields() | {
            "intermediate_size": self.intermediate_size,
            "num_key_value_heads": num_key_value_heads,
            "head_dim": _even(self.head_dim or self.head_dim_by_division()),
            "gated_mlp": True,
            "qkv_bias": qkv_bias,
            "attention_out_bias": attention_out_bias,
            "mlp_bias": mlp_bias,
            "norm_bias": False,
            "head_norms": head_norms,
            "norm_eps": self.rms_norm_eps,
            "tie_word_embeddings": self.tie_word_embeddings,
            **self._rope(),
        }

    def no_window(self, sliding_window: int | None) -> None:
        """Raise ValueError where attention would not reach back to a request's first token."""
        if sliding_window is not None and sliding_window < self.max_position_embeddings:
            raise ValueError(
                f"sliding_window is {sliding_window} of {self.max_position_embeddings} positions, "
                "and attention over a window is not supported"
            )

    def _rope(self) -> dict[str, Any]:
        given = self.rope_parameters or self.rope_scaling or {}
        kind = given.get("rope_type", given.get("type", "default"))
        _only("rope_type", kind, "default", "llama3")
        theta = msgspec.convert(given.get("rope_theta", self.rope_theta), float)
        scaling = msgspec.convert(given, Llama3RopeScaling) if kind == "llama3" else None
        return {"rope_theta": theta, "rope_scaling": scaling}


class _Llama(_Rotary, kw_only=True):
    attention_bias: bool = False
    mlp_bias: bool = False

    def fields(self) -> dict[str, Any]:
        return self.layer_fields(
            qkv_bias=self.attention_bias,
            attention_out_bias=self.attention_bias,
            mlp_bias=self.mlp_bias,
        )


class _Mistral(_Rotary, kw_only=True):
    num_key_value_heads: _Count | None = 8
    sliding_window: int | None = 4096

    def fields(self) -> dict[str, Any]:
        self.no_window(self.sliding_window)
        return self.layer_fields()


class _Qwen(_Rotary, kw_only=True):
    """What Qwen2 and Qwen3 have: layers from ``max_window_layers`` on may have a window."""

    num_key_value_heads: _Count | None = 32
    use_sliding_window: bool = False
    sliding_window: int | None = 4096
    max_window_layers: int = 28
    layer_types: list[str] | None = None

    def no_window_in_use(self) -> None:
        """`no_window`, where any layer has it."""
        slides = self.max_window_layers < self.num_hidden_layers
        if self.layer_types is not None:
            slides = "sliding_attention" in self.layer_types
        if self.use_sliding_window and slides:
            self.no_window(self.sliding_window)


class _Qwen2(_Qwen, kw_only=True):
    def fields(self) -> dict[str, Any]:
        self.no_window_in_use()
        return self.layer_fields(qkv_bias=True)


class _Qwen3(_Qwen, kw_only=True):
    head_dim: _Count | None = 128
    attention_bias: bool = False

    def fields(self) -> dict[str, Any]:
        self.no_window_in_use()
        return self.layer_fields(
            qkv_bias=self.attention_bias, attention_out_bias=self.attention_bias, head_norms=True
        )


FAMILIES: dict[str, type[_OPT | _Llama | _Mistral | _Qwen2 | _Qwen3]] = {
    "OPTForCausalLM": _OPT,
    "LlamaForCausalLM": _Llama,
    "MistralForCausalLM": _Mistral,
    "Qwen2ForCausalLM": _Qwen2,
    "Qwen3ForCausalLM": _Qwen3,
}
"""By the architecture, as ``config.json`` names it."""


def end_of_text_ids(said: EosTokenId) -> tuple[int, ...]:
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

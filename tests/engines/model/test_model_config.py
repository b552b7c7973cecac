"""Configs: what a model costs, computed by hand, and what cannot be run, refused."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch

from engines.builtin.model.config import load_model
from engines.builtin.model.hf_families import FAMILIES
from engines.builtin.model.llama import rotary_table
from engines.builtin.registries import ARCHITECTURES

OPT: dict[str, Any] = {
    "architectures": ["OPTForCausalLM"],
    "hidden_size": 8,
    "ffn_dim": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "vocab_size": 10,
    "max_position_embeddings": 6,
}
LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 8,
    "intermediate_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 10,
    "max_position_embeddings": 6,
}
LLAMA3 = {
    "factor": 32.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
    "rope_type": "llama3",
}


def write(folder: Path, fields: object) -> str:
    path = folder / "config.json"
    path.write_text(fields if isinstance(fields, str) else json.dumps(fields))
    return str(path)


@pytest.mark.parametrize(
    ("name", "num_parameters", "kv_bytes", "pair_flops"),
    [
        ("opt-125m", 125_239_296, 36_864, 36_864),
        ("opt-1.3b", 1_315_758_080, 196_608, 196_608),
        ("llama-3-8b", 8_030_261_248, 131_072, 524_288),
        ("llama-3.2-1b", 1_235_814_400, 32_768, 131_072),
        ("qwen3-0.6b", 596_049_920, 114_688, 229_376),
    ],
)
def test_shipped_models(name, num_parameters, kv_bytes, pair_flops):
    source = load_model(name)
    assert source.folder is None
    assert source.config.num_parameters == num_parameters
    assert source.config.kv_bytes_per_token(2) == kv_bytes
    assert source.config.attention_flops_per_token_pair == pair_flops


def test_flops_are_of_what_is_multiplied():
    """By hand. OPT-125m: four matrices of 768 x 768, two of 768 x 3,072, and the head."""
    opt = 12 * (4 * 768 * 768 + 2 * 768 * 3072) + 768 * 50272
    assert load_model("opt-125m").config.flops_per_token == 2 * opt
    llama = load_model("llama-3-8b").config
    norms_and_table = 65 * 4096 + 128256 * 4096
    assert llama.flops_per_token == 2 * (llama.num_parameters - norms_and_table)


@pytest.mark.parametrize("changes", [{"enable_bias": False}, {"tie_word_embeddings": False}])
def test_every_parameter_of_an_opt_is_counted(tmp_path, changes):
    config = load_model(write(tmp_path, OPT | changes)).config
    bias = changes.get("enable_bias", True)
    tables = 10 * 8 + 8 * 8 + (0 if changes.get("tie_word_embeddings", True) else 80)
    attention = 4 * (8 * 8 + bias * 8)
    mlp = 8 * 16 + bias * 16 + 16 * 8 + bias * 8
    assert config.num_parameters == tables + attention + mlp + 3 * 16


@pytest.mark.parametrize(
    "changes",
    [
        {"attention_bias": True},
        {"mlp_bias": True},
        {"tie_word_embeddings": True},
        {"head_dim": 6},
        {"num_key_value_heads": None},
    ],
)
def test_every_parameter_of_a_llama_is_counted(tmp_path, changes):
    fields = LLAMA | changes
    config = load_model(write(tmp_path, fields)).config
    q = 4 * fields.get("head_dim", 2)
    kv = (fields["num_key_value_heads"] or 4) * fields.get("head_dim", 2)
    tables = 80 if changes.get("tie_word_embeddings") else 160
    attention = 8 * q + 2 * 8 * kv + q * 8 + bool(changes.get("attention_bias")) * (q + 2 * kv + 8)
    mlp = 3 * 8 * 16 + bool(changes.get("mlp_bias")) * (2 * 16 + 8)
    assert config.num_parameters == tables + attention + mlp + 3 * 8


@pytest.mark.parametrize(
    ("architecture", "biases", "norms"),
    [("Mistral", 0, 0), ("Qwen2", (4 + 2 * 2) * 6, 0), ("Qwen3", 0, 2 * 6)],
)
def test_every_parameter_of_the_other_families_is_counted(tmp_path, architecture, biases, norms):
    """Beside matrices and norms of a layer: biases of queries, keys and values, norms of heads."""
    fields = LLAMA | {"architectures": [f"{architecture}ForCausalLM"], "head_dim": 6}
    config = load_model(write(tmp_path, fields | {"sliding_window": None})).config
    matrices = 2 * 8 * 4 * 6 + 2 * 8 * 2 * 6 + 3 * 8 * 16
    assert config.num_parameters == 160 + matrices + biases + norms + 3 * 8


@pytest.mark.parametrize("architecture", ["Mistral", "Qwen2", "Qwen3"])
@pytest.mark.parametrize("missing", ["num_key_value_heads", "head_dim"])
def test_a_key_that_is_missing_means_what_it_means_to_transformers(tmp_path, architecture, missing):
    transformers = pytest.importorskip("transformers")
    given = {"num_attention_heads": 32, "hidden_size": 64, "num_key_value_heads": 4, "head_dim": 6}
    del given[missing]
    expected = getattr(transformers, f"{architecture}Config")(**given)
    fields = LLAMA | {"architectures": [f"{architecture}ForCausalLM"], "sliding_window": None}
    del fields["num_key_value_heads"]
    config = load_model(write(tmp_path, fields | given)).config
    assert config.num_key_value_heads == expected.num_key_value_heads
    assert config.head_dim == getattr(expected, "head_dim", 64 // 32)


@pytest.mark.parametrize(
    ("architecture", "changes", "slides"),
    [
        ("Mistral", {}, True),
        ("Mistral", {"sliding_window": 9_999}, True),
        ("Mistral", {"sliding_window": 10_000}, False),
        ("Mistral", {"sliding_window": None}, False),
        ("Qwen2", {}, False),
        ("Qwen2", {"use_sliding_window": True}, False),
        ("Qwen2", {"use_sliding_window": True, "max_window_layers": 0}, True),
        ("Qwen2", {"max_window_layers": 0}, False),
        ("Qwen3", {"use_sliding_window": True, "layer_types": ["sliding_attention"]}, True),
        ("Qwen3", {"use_sliding_window": True, "layer_types": ["full_attention"]}, False),
        (
            "Qwen3",
            {"use_sliding_window": True, "max_window_layers": 0, "sliding_window": None},
            False,
        ),
    ],
)
def test_attention_over_a_window_is_refused(tmp_path, architecture, changes, slides):
    """As far as one of the model's layers has it, and it is shorter than the longest request."""
    fields = LLAMA | {"architectures": [f"{architecture}ForCausalLM"], "num_attention_heads": 4}
    path = write(tmp_path, fields | {"max_position_embeddings": 10_000} | changes)
    if not slides:
        assert load_model(path).config.max_position_embeddings == 10_000
        return
    window = changes.get("sliding_window", 4096)
    sentence = (
        f"model config {path}: sliding_window is {window} of 10000 positions, and attention over a "
        "window is not supported; give one of "
    )
    with pytest.raises(ValueError, match=re.escape(sentence)) as caught:
        load_model(path)
    assert "\n" not in str(caught.value)


def test_rope_of_transformers_4_and_5_reads_the_same(tmp_path):
    old = load_model(write(tmp_path, LLAMA | {"rope_theta": 5e5, "rope_scaling": LLAMA3})).config
    oldest = LLAMA3 | {"type": LLAMA3["rope_type"]}
    del oldest["rope_type"]
    oldest_read = load_model(write(tmp_path, LLAMA | {"rope_theta": 5e5, "rope_scaling": oldest}))
    new = load_model(write(tmp_path, LLAMA | {"rope_parameters": LLAMA3 | {"rope_theta": 5e5}}))
    assert old == new.config == oldest_read.config
    assert old.rope_theta == 5e5
    assert old.rope_scaling == load_model("llama-3.2-1b").config.rope_scaling
    plain = {"rope_type": "default", "rope_theta": 5e5}
    new = load_model(write(tmp_path, LLAMA | {"rope_parameters": plain}))
    assert new.config == load_model(write(tmp_path, LLAMA | {"rope_theta": 5e5})).config
    assert load_model(write(tmp_path, LLAMA)).config.rope_theta == 10_000


def test_scaled_wavelengths():
    """Of Llama 3.2: the short stay, those beyond 8,192 positions are 32 times as long."""
    config = msgspec.structs.replace(load_model("llama-3.2-1b").config, max_position_embeddings=2)
    cos, sin = rotary_table(config, torch.device("cpu"))[1]
    wavelengths = 2 * torch.pi / torch.atan2(sin, cos)
    plain = 2 * torch.pi * 500_000 ** (torch.arange(32) / 32)
    torch.testing.assert_close(wavelengths[plain < 2048], plain[plain < 2048], rtol=1e-4, atol=0)
    long = plain > 8192
    torch.testing.assert_close(wavelengths[long], 32 * plain[long], rtol=1e-4, atol=0)
    between = ~long & (plain > 2048)
    assert between.any()
    assert (wavelengths[between] > plain[between]).all()
    assert (wavelengths[between] < 32 * plain[between]).all()


@pytest.mark.parametrize(
    ("changes", "dtype", "eos"),
    [
        ({"torch_dtype": "float16", "eos_token_id": 2}, "float16", (2,)),
        ({"dtype": "bfloat16", "eos_token_id": [7, 8]}, "bfloat16", (7, 8)),
        ({"eos_token_id": None}, "float32", ()),
        ({"eos_token_id": []}, "float32", ()),
        ({"eos_token_id": -1}, "float32", ()),
    ],
)
def test_dtype_and_end_of_text(tmp_path, changes, dtype, eos):
    config = load_model(write(tmp_path, LLAMA | changes)).config
    assert (config.dtype, config.eos_token_ids) == (dtype, eos)


@pytest.mark.parametrize(
    ("generation", "eos"),
    [
        ({"eos_token_id": 5}, (5,)),
        ({"eos_token_id": [5, 4]}, (5, 4)),
        ({"eos_token_id": []}, ()),
        ({"eos_token_id": None}, (7, 8)),
        ({"temperature": 0.6}, (7, 8)),
    ],
)
def test_the_generation_config_says_what_ends_a_text(tmp_path, generation, eos):
    path = write(tmp_path, LLAMA | {"eos_token_id": [7, 8]})
    (tmp_path / "generation_config.json").write_text(json.dumps(generation))
    assert load_model(path).config.eos_token_ids == eos


def test_a_generation_config_that_is_none(tmp_path):
    path = write(tmp_path, LLAMA)
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": "x"}')
    sentence = f"^model config {path}: generation_config.json beside it: Expected `int .*; give"
    with pytest.raises(ValueError, match=sentence):
        load_model(path)


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ("{", "truncated"),
        ("{]", "JSON is malformed"),
        ("[]", "Expected `object`"),
        ('{"architectures": ["\xe9"]}', "architectures is ['é'], and none of them"),
        ({}, "architectures is [], and none of them is supported"),
        ({"architectures": ["GPT2LMHeadModel"]}, "architectures is ['GPT2LMHeadModel'], and none"),
        ({k: v for k, v in OPT.items() if k != "ffn_dim"}, "missing required field `ffn_dim`"),
        ({k: v for k, v in LLAMA.items() if k != "vocab_size"}, "field `vocab_size`"),
        (LLAMA | {"hidden_size": "8"}, "Expected `int`, got `str` - at `$.hidden_size`"),
        (LLAMA | {"num_hidden_layers": 0}, "`$.num_hidden_layers`"),
        (OPT | {"word_embed_proj_dim": 4}, "word_embed_proj_dim is 4, and only 8 is supported"),
        (OPT | {"do_layer_norm_before": False}, "do_layer_norm_before is False, and only True"),
        (OPT | {"_remove_final_layer_norm": True}, "_remove_final_layer_norm is True"),
        (OPT | {"layer_norm_elementwise_affine": False}, "layer_norm_elementwise_affine is False"),
        (OPT | {"activation_function": "gelu"}, "activation_function is 'gelu', and only 'relu'"),
        (LLAMA | {"hidden_act": "gelu"}, "hidden_act is 'gelu', and only 'silu' is supported"),
        (OPT | {"num_attention_heads": 3}, "hidden_size 8 is not divisible by num_attention_heads"),
        (LLAMA | {"num_key_value_heads": 3}, "is not divisible by num_key_value_heads 3"),
        (LLAMA | {"head_dim": 3}, "head_dim 3 is odd"),
        (OPT | {"num_attention_heads": 8}, "head_dim 1 is odd"),
        (LLAMA | {"rope_scaling": {"type": "linear", "factor": 2.0}}, "rope_type is 'linear'"),
        (LLAMA | {"rope_parameters": {"rope_type": "yarn"}}, "only 'default' or 'llama3' is"),
        (LLAMA | {"rope_scaling": {"rope_type": "llama3"}}, "missing required field `factor`"),
        (LLAMA | {"rope_parameters": {"rope_theta": "x"}}, "Expected `float`, got `str`"),
        (LLAMA | {"torch_dtype": "float8_e4m3fn"}, "dtype is 'float8_e4m3fn', and only"),
        (LLAMA | {"quantization_config": {"bits": 4}}, "quantization_config is set"),
    ],
)
def test_a_config_that_cannot_be_run(tmp_path, fields, complaint):
    path = write(tmp_path, fields)
    with pytest.raises(ValueError, match=re.escape(complaint)) as caught:
        load_model(path)
    said = str(caught.value)
    assert said.startswith(f"model config {path}: ")
    assert said.endswith(" or Qwen3ForCausalLM as Hugging Face writes it")


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("opt-125", "opt-125m"),
        ("facebook/opt-1.3b", "opt-1.3b"),
        ("meta-llama/Llama-3.2-1B", "llama-3.2-1b"),
        ("/no/such/folder", "llama-3-8b, llama-3.2-1b, opt-1.3b, opt-125m"),
    ],
)
def test_an_unknown_model(name, near):
    with pytest.raises(ValueError, match=re.escape(f"unknown model {name!r}: neither")) as caught:
        load_model(name)
    assert f"did you mean {near}" in str(caught.value)


def test_a_folder_without_a_needed_file(tmp_path):
    with pytest.raises(ValueError, match=f"model {tmp_path}: no config.json in it; give"):
        load_model(str(tmp_path))
    path = write(tmp_path, OPT)
    (tmp_path / "pytorch_model.bin").touch()
    wanted = re.escape(f"give {path} alone for random weights")
    with pytest.raises(ValueError, match=f"neither model.safetensors nor .* in it; {wanted}"):
        load_model(str(tmp_path))
    assert load_model(path).folder is None
    (tmp_path / "model.safetensors").touch()
    assert load_model(str(tmp_path)) == (load_model(path).config, tmp_path)


def test_every_architecture_that_is_read_can_be_built():
    assert list(FAMILIES) == ARCHITECTURES.names()
    for name in FAMILIES:
        assert callable(ARCHITECTURES.load(name).forward)


def test_reading_a_config_loads_no_torch(fresh_interpreter):
    script = "import sys, json; from engines.builtin.model.config import load_model\n"
    script += "load_model('llama-3.2-1b'); print(json.dumps('torch' in sys.modules))"
    assert fresh_interpreter(script) is False

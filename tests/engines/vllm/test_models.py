"""A model is a shipped config or a folder that holds one."""

import json

import pytest

from engines.model_configs import shipped_models
from engines.vllm.model_folder import has_weights, model_folder

GOOD = {
    "architectures": ["OPTForCausalLM"],
    "hidden_size": 8,
    "num_attention_heads": 2,
    "num_hidden_layers": 1,
    "vocab_size": 64,
}


@pytest.mark.parametrize("name", shipped_models())
def test_shipped_configs_can_be_served_without_weights(name):
    folder = model_folder(name)
    config = json.loads((folder / "config.json").read_text())
    assert config["hidden_size"] % config["num_attention_heads"] == 0
    # Tokens of the built-in engine's vocabulary go to any of them.
    assert config["vocab_size"] >= 50272
    assert not has_weights(folder)


def test_models_that_the_catalog_names_are_shipped():
    assert {"opt-125m", "opt-tiny", "llama-3-8b"} <= set(shipped_models())


def test_a_folder_is_taken_and_its_weights_are_seen(tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.json").write_text(json.dumps(GOOD))
    assert model_folder(str(tmp_path / "mine")) == tmp_path / "mine"
    monkeypatch.setenv("HOME", str(tmp_path))
    assert model_folder("~/mine") == tmp_path / "mine"
    assert not has_weights(tmp_path / "mine")
    (tmp_path / "mine" / "model.safetensors").touch()
    assert has_weights(tmp_path / "mine")


def test_an_unknown_name_gives_the_nearest():
    with pytest.raises(ValueError, match=r"unknown model 'opt-125'; did you mean opt-125m"):
        model_folder("opt-125")


def test_a_name_like_none_gives_all():
    with pytest.raises(ValueError, match="'zzz'") as raised:
        model_folder("zzz")
    assert all(name in str(raised.value) for name in shipped_models())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "cannot be read"),
        ("", "cannot be read"),
        ("{", "cannot be read"),
        (b"\xff\xfe", "cannot be read"),
        ("[]", "lacks architectures"),
        ("null", "lacks architectures"),
        ('"architectures"', "lacks architectures"),
        *(
            (json.dumps({k: v for k, v in GOOD.items() if k != name}), f"lacks {name}")
            for name in GOOD
        ),
    ],
)
def test_a_config_that_is_none_is_named_by_its_folder(tmp_path, text, words):
    if isinstance(text, bytes):
        (tmp_path / "config.json").write_bytes(text)
    elif text is not None:
        (tmp_path / "config.json").write_text(text)
    with pytest.raises(ValueError, match=words) as raised:
        model_folder(str(tmp_path))
    assert str(tmp_path) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_file_is_no_folder(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(GOOD))
    with pytest.raises(ValueError, match="unknown model"):
        model_folder(str(path))

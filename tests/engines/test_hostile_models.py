"""Models and tokenizers of somebody who means no good: refused in a sentence, or read."""

import json
from contextlib import suppress
from pathlib import Path

import pytest
from examples import examples
from hostile_values import JSON_VALUES, NO_FILES, spoilt
from hypothesis import given

from engines.builtin.device.profile import SHIPPED_PROFILES, load_profile
from engines.builtin.model.config import load_model
from engines.builtin.text.byte_table import ByteTable
from engines.builtin.text.decoder_rules import find_rules
from engines.model_configs import shipped_folder, shipped_models
from engines.vllm.model_folder import model_folder
from engines.vocabulary import read_vocabulary

CONFIGS = [
    json.loads((Path(shipped_folder(name)) / "config.json").read_text())
    for name in shipped_models()
]
DECODERS = [
    {"type": "ByteLevel"},
    {
        "type": "Sequence",
        "decoders": [
            {"type": "Replace", "pattern": {"String": "_"}, "content": " "},
            {"type": "ByteFallback"},
            {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0},
        ],
    },
    {"type": "Metaspace", "replacement": "_", "prepend_scheme": "first"},
]
TOKENIZERS = [
    {
        "model": {"vocab": vocab},
        "decoder": decoder,
        "added_tokens": [{"id": 2, "content": "</s>", "special": True}],
    }
    for vocab in ({"a": 0, "b": 1}, [["a", 0.5], ["b", 0.5]])
    for decoder in DECODERS
]


def in_folder(path: str) -> Path:
    return model_folder(str(Path(path).parent))


@given(spoilt(CONFIGS, JSON_VALUES))
@examples(1000)
def test_whatever_a_config_holds_it_is_a_model_or_refused(tmp_path_factory, config):
    path = tmp_path_factory.getbasetemp() / "config.json"
    path.write_text(json.dumps(config))
    with suppress(ValueError):
        model_folder(str(path.parent))
    with suppress(ValueError):
        model = load_model(str(path)).config
        assert model.num_parameters > 0
        assert all(0 <= token_id < 2**31 for token_id in model.eos_token_ids)


@given(spoilt(TOKENIZERS, JSON_VALUES))
@examples(1000)
def test_whatever_a_tokenizer_holds_it_is_read_or_refused(tmp_path_factory, tokenizer):
    path = tmp_path_factory.getbasetemp() / "tokenizer.json"
    path.write_text(json.dumps(tokenizer))
    with suppress(ValueError):
        assert read_vocabulary(str(path)).size < 2**25
        find_rules(str(path))
        table = ByteTable(str(path), 8)
        table.stream().step(0)
        table.decode([0, 1])


@pytest.mark.parametrize("token_id", [10**12, -1, 2**63])
def test_ids_that_no_table_could_be_long_enough_for_are_refused(tmp_path, token_id):
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({"model": {"vocab": {"a": token_id}}}))
    with pytest.raises(ValueError, match=f"a token has the id {token_id}"):
        read_vocabulary(str(path))


@pytest.mark.parametrize("make", NO_FILES.values(), ids=NO_FILES)
def test_what_is_no_file_is_refused_in_a_sentence(tmp_path, make):
    for name, read in (
        ("config.json", load_model),
        ("config.json", in_folder),
        ("tokenizer.json", read_vocabulary),
        ("profile.toml", load_profile),
    ):
        folder = tmp_path / f"{name}-{read.__name__}"
        folder.mkdir()
        make(folder / name)
        with pytest.raises(ValueError, match=name) as refused:
            read(str(folder / name))
        assert "\n" not in str(refused.value)


def test_json_that_is_deeper_than_a_stack_is_refused(tmp_path):
    for text in ("[" * 10_000, '{"a":' * 10_000, '{"architectures": ' + "[" * 10_000):
        (tmp_path / "config.json").write_text(text)
        for read in (
            load_model,
            lambda path: model_folder(str(Path(path).parent)),
            read_vocabulary,
        ):
            with pytest.raises(ValueError, match="json"):
                read(str(tmp_path / "config.json"))


def test_a_profile_is_no_larger_than_tomllib_reads_in_a_second(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(".".join(["a"] * 100_000) + " = 1")
    with pytest.raises(ValueError, match="larger than 16,384 bytes"):
        load_profile(str(path))
    assert max(each.stat().st_size for each in SHIPPED_PROFILES.glob("*.toml")) < 8192

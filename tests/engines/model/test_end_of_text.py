"""A model's text ends where its own config says, whatever the tokenizer beside it."""

import json
from pathlib import Path

import numpy as np
import pytest
from tiny_models import VOCAB_SIZE, Saved, save

from engines.builtin.engine import Engine
from engines.protocol import EngineConfig, FinishReason, SamplingParams

PROMPT, MOST_TOKENS = [5, 17, 3], 12
SHAPES = [("list_of_lists", "per_request"), ("flat_arrays", "columnar")]


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Saved:
    pytest.importorskip("transformers")
    return save("llama", tmp_path_factory.mktemp("llama"))


def folder_with(saved: Saved, folder: Path, **said: dict[str, object]) -> Path:
    """The same model with other words on what ends a text: those of ``said``, by file."""
    (folder / "model.safetensors").symlink_to(saved.folder / "model.safetensors")
    config = json.loads((saved.folder / "config.json").read_text()) | {"eos_token_id": None}
    (folder / "config.json").write_text(json.dumps(config | said.get("config", {})))
    if "generation_config" in said:
        (folder / "generation_config.json").write_text(json.dumps(said["generation_config"]))
    return folder


def serve(
    folder: Path, shape: tuple[str, str], eos_token_id: int, **params: object
) -> tuple[list[int], FinishReason]:
    representation, delivery = shape
    engine = Engine(
        EngineConfig(
            max_num_seqs=2,
            max_model_len=40,
            device="cpu",
            model=str(folder),
            block_size=4,
            representation=representation,
            delivery=delivery,
            eos_token_id=eos_token_id,
        )
    )
    engine.add_request(0, np.array(PROMPT, np.int32), SamplingParams(MOST_TOKENS, **params))
    reasons: list[int] = []
    while engine.has_unfinished_requests():
        for delivered in engine.step().delivered:
            reasons += delivered.finish_reasons.tolist()
    (reason,) = reasons
    return engine.output_token_ids(0).tolist(), FinishReason(reason)


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["config", "generation_config"])
def test_any_of_the_models_own_ids_ends_a_text(saved, tmp_path, name, shape):
    whole = saved.greedy(PROMPT, MOST_TOKENS)
    tokenizers, last = whole[0], next(token for token in whole if token != whole[0])
    never = next(token for token in range(VOCAB_SIZE) if token not in whole)
    folder = folder_with(saved, tmp_path, **{name: {"eos_token_id": [never, last]}})
    end = whole.index(last) + 1
    ended = (whole[:end], FinishReason.STOP)
    assert serve(folder, shape, tokenizers, ignore_eos=False) == ended
    unended = (whole, FinishReason.LENGTH)
    assert serve(folder, shape, tokenizers, ignore_eos=True) == unended
    assert serve(folder, shape, tokenizers, ignore_eos=False, min_tokens=MOST_TOKENS) == unended


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("eos", [None, -1, []])
def test_a_model_that_names_none_goes_on(saved, tmp_path, eos, shape):
    """The tokenizer's, which is sampled, says nothing about the model."""
    whole = saved.greedy(PROMPT, MOST_TOKENS)
    folder = folder_with(saved, tmp_path, config={"eos_token_id": eos})
    unended = (whole, FinishReason.LENGTH)
    assert serve(folder, shape, whole[0], ignore_eos=False) == unended

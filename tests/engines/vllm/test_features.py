"""What requests ask of vLLM beside: read from one word, and tokens that any grammar takes."""

import re

import numpy as np
import pytest
from tokenizers import Tokenizer

from engines.prepared.features import Features, fitting_tokens
from engines.protocol import EngineConfig
from engines.vllm.features import engine_arguments, features_of, sampling_fields
from engines.vocabulary import SHIPPED_TOKENIZER


def read(features: str) -> Features:
    return features_of(EngineConfig(max_num_seqs=8, max_model_len=64, features=features))


def test_features_are_read_from_names_with_plus_between():
    assert read("none") == Features()
    assert read("stop") == Features(has_stop=True)
    assert read("grammar+lora:3+samples:2") == Features(2, 3, has_grammar=True)
    assert read("stop+kv-connector") == Features(has_stop=True, has_connector=True)
    assert sampling_fields(read("none")) == engine_arguments(read("none")) == {}
    asked = sampling_fields(read("samples:2+stop+grammar"))
    assert set(asked) == {"n", "temperature", "stop", "structured_outputs"}
    assert engine_arguments(read("lora:64"))["max_loras"] == 64


@pytest.mark.parametrize(
    "features",
    [
        "",
        "stop:1",
        "samples",
        "samples:1",
        "samples:65",
        "lora:0",
        "lora:-1",
        "grammar:x",
        "kv-connector:1",
        "stop+",
        "stop+stop",
        "lora:2+lora:3",
    ],
)
def test_what_is_no_feature_is_said(features):
    with pytest.raises(ValueError, match=f"^--axis features={re.escape(features)}: must be"):
        read(features)


def test_tokens_that_are_no_text_are_another_and_all_others_themselves():
    tokens = fitting_tokens("")
    tokenizer = Tokenizer.from_file(str(SHIPPED_TOKENIZER))
    texts = [tokenizer.decode([each], skip_special_tokens=False) for each in range(len(tokens))]
    special = tokenizer.get_added_tokens_decoder()
    is_text = np.array([each not in special and "\ufffd" not in t for each, t in enumerate(texts)])
    assert 0.9 < is_text.mean() < 1
    assert (tokens[is_text] == np.flatnonzero(is_text)).all()
    assert is_text[tokens].all()

"""How a client says that its tokens are to be drawn."""

import asyncio
import json

import pytest
from served import serving

from engines.protocol import EngineConfig, Sampling
from engines.server.prompts import Prompts
from engines.server.request_bodies import CompletionBody, decode
from engines.server.tokenizer import TextTokenizer

TINY = {
    "architectures": ["OPTForCausalLM"],
    "model_type": "opt",
    "activation_function": "relu",
    "do_layer_norm_before": True,
    "eos_token_id": 2,
    "hidden_size": 32,
    "ffn_dim": 48,
    "word_embed_proj_dim": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
    "vocab_size": 50272,
    "tie_word_embeddings": True,
}


@pytest.mark.parametrize(
    ("engines", "asked", "sampling"),
    [
        ("greedy", {}, None),
        ("greedy", {"temperature": 0, "top_p": 0.5, "seed": 3}, None),
        ("greedy", {"temperature": 1e-9}, None),
        ("greedy", {"temperature": 0.5}, Sampling(0.5)),
        ("greedy", {"temperature": "2"}, Sampling(2.0)),
        (
            "greedy",
            {"temperature": 1, "top_k": -1, "top_p": 0.9, "seed": -1},
            Sampling(1, 0, 0.9, 2**32 - 1),
        ),
        ("0.8:50:0.9", {}, None),
        ("0.8:50:0.9", {"temperature": 0.8}, None),
        ("0.8:50:0.9", {"temperature": 0}, Sampling()),
        ("0.8:50:0.9", {"top_k": 0}, Sampling(0.8, 0, 0.9)),
        ("0.8:50:0.9", {"seed": 2**40 + 7}, Sampling(0.8, 50, 0.9, 7)),
    ],
)
def test_what_is_left_out_is_the_engines(engines, asked, sampling):
    config = EngineConfig(max_num_seqs=1, max_model_len=64, device="cpu", sampling=engines)
    body = decode(json.dumps({"prompt": [1], **asked}).encode(), CompletionBody)
    (one,) = asyncio.run(Prompts(config, TextTokenizer(""), most=1).of_completion(body))
    assert one.params.sampling == sampling


@pytest.mark.slow
def test_each_client_gets_what_it_asks_for(tmp_path):
    (model := tmp_path / "config.json").write_text(json.dumps(TINY))
    flags = [
        "--device",
        "cpu",
        "--axis",
        f"model={model}",
        "--batch-size",
        "4",
        "--axis",
        "max-model-len=64",
    ]
    with serving(*flags, "--served-model-name", "tiny") as served:

        def tokens(**asked: object) -> list[int]:
            answer = served.complete(max_tokens=20, ignore_eos=True, return_token_ids=True, **asked)
            found: list[int] = answer.json()["choices"][0]["token_ids"]
            return found

        greedy = tokens()
        assert tokens(temperature=0) == tokens(temperature=2, top_k=1) == greedy
        hot = {"temperature": 2.0}
        assert tokens(**hot, seed=1) == tokens(**hot, seed=1) != tokens(**hot, seed=2)
        assert len({tuple(each) for each in (greedy, tokens(**hot), tokens(**hot))}) == 3

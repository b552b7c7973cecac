"""What is run before the first request has every kernel in every variant; compiled for an H100."""

import json
import os
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from engines.builtin.model.warm_up import warm_up_passes
from engines.protocol import EngineConfig

ROOT = Path(__file__).parents[3]

SCRIPT = """
import json, sys
from random import Random
import numpy as np
import torch

sys.path.append("tests/engines/model")
from hopper import compile_only

compiled = []
compile_only(lambda name, kernel: compiled.append((name, kernel.hash)))
# What no kernel has written must still be a token.
torch.empty = lambda *shape, empty=torch.empty, **kind: empty(*shape, **kind).zero_()

from engines.builtin.model.forward import ForwardPass
from engines.builtin.model.kernels import TritonOps, paged_decode
from engines.builtin.model.kernels.gumbel import sample
from engines.builtin.model.parallel import ONE_RANK
from engines.builtin.model.warm_up import unwritten_pass, warm_up_passes
from engines.protocol import EngineConfig

sys.modules["engines.builtin.model.kernels.paged_decode"]._num_sms = lambda device: 132
config = EngineConfig(max_num_seqs=96, max_model_len=512, max_num_batched_tokens=512,
                      model=sys.argv[1], device="cuda", dtype="bfloat16")
forward = ForwardPass(config, ONE_RANK, torch.device("cpu"), TritonOps(), sample)
forward.allocate_cache(1)
table = torch.zeros((97, 33), dtype=torch.int32)


def run(inputs):
    tensors = inputs.brought(lambda arrays: [torch.from_numpy(each) for each in arrays])
    with torch.inference_mode():
        forward.step(tensors, table)


for inputs in warm_up_passes(config, 96):
    run(inputs)
before, random = set(compiled), Random(2)
for _ in range(60):
    rows = random.randint(1, 96)
    longest = random.choice([1, 1, 2, 3, 512 // rows])
    lengths = np.array([random.randint(1, longest) for _ in range(rows)])
    run(unwritten_pass(lengths, config, 96, random.randrange(512 - longest)))
print(json.dumps([sorted(before), sorted(set(compiled) - before)]))
"""

MODEL = """{"architectures": ["%s"], "hidden_size": 64, "num_hidden_layers": 1,
"num_attention_heads": 16, "num_key_value_heads": %d, "intermediate_size": 32, "ffn_dim": 32,
"vocab_size": 90, "max_position_embeddings": 512, "rms_norm_eps": 1e-5}"""


@pytest.mark.slow
@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")
@pytest.mark.parametrize(("architecture", "kv_heads"), [("OPT", 16), ("Llama", 4)])
def test_no_later_pass_has_another_variant(tmp_path, architecture, kv_heads):
    (tmp_path / "config.json").write_text(MODEL % (f"{architecture}ForCausalLM", kv_heads))
    environment = {**os.environ}
    environment.setdefault("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    environment.pop("TRITON_INTERPRET", None)
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "config.json")]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    before, after = json.loads(done.stdout)
    assert after == []
    variants = Counter(name for name, _ in before)
    assert variants["_prefill"] == 2, "a tile for rows that nearly all decode, and one for prompts"
    assert variants["_combine"] > 1


@pytest.mark.parametrize(("rows", "budget"), [(1, 8), (6, 64), (1024, 8192), (64, 48)])
def test_the_greatest_pass_comes_first(rows, budget):
    config = EngineConfig(max_num_seqs=rows, max_model_len=32, max_num_batched_tokens=budget)
    first, *others = (
        (len(each.positions), len(each.sampled.places)) for each in warm_up_passes(config, rows)
    )
    assert first[0] <= max(budget, rows)
    assert all(np.all(np.array(first) >= each) for each in others if each[0] <= budget)
    assert first[1] == min(rows, budget)

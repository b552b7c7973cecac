"""The kernels compile for an H100 or H200 as they are launched; needs no GPU.

The interpreter accepts what the compiler refuses, and does not show how memory is read.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[3]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed"),
]

SCRIPT = """
import json, sys
import torch

sys.path.append("tests/engines/model")
from hopper import compile_only


def note(name, kernel):
    copies = kernel.asm["ptx"].count("cp.async.cg.shared.global")
    compiled.append([name, dtype, kernel.metadata.shared, copies, kernel.hash])


def everything(shape, kind):
    decode = attention_case(shape, [1] * 16, [48] * 16, dtype=kind)
    prefill = attention_case(shape, [48] * 16, [48] * 16, dtype=kind)
    mixed = attention_case(shape, [48] + [1] * 63, [48] * 64, dtype=kind)
    for q, cache, batch, scale in (decode, prefill, mixed):
        batch = batch._replace(**{name: begin(getattr(batch, name)) for name in STEP})
        ops.attention(q, cache, batch, scale)
        kv = q[:, : shape.num_kv_heads]
        ops.rotate_and_cache(q, kv, kv, None, None, cache, batch)
    paged_decode(*decode, 4)
    kv = decode.q[:, :shape.num_kv_heads]
    table = rotation_table(64, shape.head_dim)
    norms = HeadNorms(kv[0, 0], kv[0, 0], 1e-6)
    for each in (None, norms):
        ops.rotate_and_cache(decode.q, kv, kv, each, table, decode.cache, decode.batch)
    x = decode.q.flatten(1)
    for residual in (None, x):
        ops.add_layer_norm(x, residual, x[0], x[0], 1e-5)
        ops.add_rms_norm(x, residual, x[0], 1e-5)
    ops.silu_and_mul(x)
    requests = begin(torch.arange(16))
    for temperature in (0.0, 0.7):
        sample(x, temperature, 1, requests, requests)
    rows = torch.zeros(2, 21, dtype=torch.int64)[0, :16]
    progress = torch.zeros(3, 17, dtype=torch.int64)
    for width in (1, 3):
        ops.decode_tokens(rows, progress, requests, decode.batch.block_table, width=width,
                          block_size=shape.block_size)
        ops.to_host(requests.int(), torch.zeros(2, 16, width, dtype=torch.int32), progress[0, :1])


compile_only(note)

from engines.builtin.model import HeadNorms
from engines.builtin.model.kernels import TritonOps
from engines.builtin.model.kernels.gumbel import sample
from engines.builtin.model.kernels.paged_decode import paged_decode
from kernel_oracles import Shape, attention_case, rotation_table

STEP = "positions", "slot_mapping", "rows", "seq_lens", "query_start"
compiled, ops = [], TritonOps()
models = {
    Shape(12, 1, 64, 16): "bfloat16",
    Shape(8, 4, 128, 16): "float16",
    Shape(3, 3, 80, 1): "float32",
    Shape(4, 1, 8, 4): "bfloat16",
}
for shape, dtype in models.items():
    begin = lambda tensor: tensor
    everything(shape, getattr(torch, dtype))
    begin = lambda tensor: torch.cat([tensor[:1], tensor])[1:]
    everything(shape, getattr(torch, dtype))
print(json.dumps(compiled))
"""


class Launch(NamedTuple):
    name: str
    dtype: str
    shared_bytes: int
    num_copies: int
    variant: str


KERNELS = {
    "_decode",
    "_combine",
    "_prefill",
    "_rotate_and_cache",
    "_norm_rows",
    "_silu_and_mul",
    "_best_of_part",
    "_best_of_row",
    "_decode_tokens",
    "_to_host",
}


def of_release(release: str) -> str:
    """A folder with that release of Triton for this Python, kept between runs as CI's others."""
    kept = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "gcbench" / "ci"
    folder = kept / f"triton-{release}-{sys.implementation.cache_tag}"
    if not folder.is_dir():
        kept.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=kept) as scratch:
            to = Path(scratch) / "whole"
            pip = [sys.executable, "-m", "pip", "install", "-qq", "--no-deps", "--target", str(to)]
            subprocess.run([*pip, f"triton=={release}"], check=True)
            to.rename(folder)
    return str(folder)


@pytest.fixture(scope="module", params=["installed", "3.6.0"])
def compiled(request, tmp_path_factory):
    """Kernel, type, bytes of shared memory, 16-byte copies and hash of every launch.

    By the Triton that is installed, and by that of torch 2.11, the oldest that is supported.
    """
    # What is kept there, as CI does, goes by the hash of sources and compiler.
    kept = os.environ.get("TRITON_CACHE_DIR") or str(tmp_path_factory.mktemp("triton"))
    environment = {**os.environ, "TRITON_CACHE_DIR": kept}
    environment.pop("TRITON_INTERPRET", None)
    if request.param != "installed":
        environment["PYTHONPATH"] = of_release(request.param)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=ROOT, env=environment, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return [Launch(*each) for each in json.loads(done.stdout)]


def test_the_kernels_compile_for_hopper(compiled):
    for dtype in ("bfloat16", "float16", "float32"):
        assert {launch.name for launch in compiled if launch.dtype == dtype} == KERNELS
    for launch in compiled:
        assert launch.shared_bytes <= 227 * 1024, launch
        if launch.name in {"_decode", "_prefill"}:
            assert launch.num_copies, "keys and values should be copied 16 bytes at a time"


def test_a_step_compiles_nothing_because_its_arrays_begin_elsewhere(compiled):
    """They are slices of one transfer; a variant would cost a second in the middle of a run."""
    variants = Counter(name for name, _ in {(each.name, each.variant) for each in compiled})
    # For each of the four models: split or not, two tiles, not rotated or that or normed as well,
    # greedy or not.
    assert variants["_decode"] == 2 * 4
    assert variants["_prefill"] == 2 * 4
    assert variants["_rotate_and_cache"] == 3 * 4
    assert variants["_best_of_part"] <= 2 * 4

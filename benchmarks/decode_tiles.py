"""Which tile makes the decode kernel fastest? Every candidate, at four contexts, batch 1,024.

    python benchmarks/decode_tiles.py RESULT.json

For OPT-125m's and Llama-3-8B's attention: µs of one layer, and the bytes of its keys and values
over that time as a share of a copy within the GPU's memory, measured in the same run. A graph of
ten launches is timed, the median of seven. The result is written after each context; the fastest
belongs into `decode_tile` of ``engines/builtin/model/kernels/tiles.py``.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import torch
from torch import Tensor

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from engines.builtin.model import ForwardBatch  # noqa: E402
from engines.builtin.model.ceilings import copy_bytes_per_second  # noqa: E402
from engines.builtin.model.kernels.paged_decode import paged_decode  # noqa: E402
from engines.builtin.model.kernels.tiles import DECODE_CANDIDATES, DecodeTile, decode_tile  # noqa: E402
from harness.files import indented  # noqa: E402
from harness.format import percent  # noqa: E402
from harness.machine.describe import describe  # noqa: E402

BLOCK_SIZE, NUM_LAUNCHES, TIMES = 16, 10, 7


class Attention(NamedTuple):
    """A model's."""

    num_heads: int
    num_kv_heads: int
    head_dim: int


MODELS = {"opt-125m": Attention(12, 12, 64), "llama-3-8b": Attention(32, 8, 128)}
CONTEXTS, NUM_REQS, COPY_BYTES = (48, 298, 1048, 2048), 1024, 1 << 30
SMALL_CONTEXTS, SMALL_NUM_REQS, SMALL_COPY_BYTES = (5, 20), 2, 1 << 16


def case(model: Attention, num_reqs: int, context: int) -> tuple[Tensor, Tensor, ForwardBatch]:
    """Queries, a cache with each request's blocks shuffled, and the batch."""
    gpu = torch.device("cuda")
    blocks = -(-context // BLOCK_SIZE)
    shape = (2, num_reqs * blocks, model.num_kv_heads, BLOCK_SIZE, model.head_dim)
    cache = torch.randn(shape, dtype=torch.bfloat16, device=gpu)
    q = torch.randn((num_reqs, model.num_heads, model.head_dim), dtype=torch.bfloat16, device=gpu)
    table = torch.randperm(num_reqs * blocks, device=gpu).int().view(num_reqs, blocks)
    rows = torch.arange(num_reqs, dtype=torch.int32, device=gpu)
    lengths = torch.full((num_reqs,), context, dtype=torch.int32, device=gpu)
    start = torch.arange(num_reqs + 1, dtype=torch.int32, device=gpu)
    return q, cache, ForwardBatch(rows, rows, rows, lengths, start, table, 1, context)


def seconds(run: Callable[[], Any]) -> float:
    """Of one call, out of a graph of several."""
    run()  # compiles
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(NUM_LAUNCHES):
            run()
    graph.replay()
    times = []
    for _ in range(TIMES):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / 1e3 / NUM_LAUNCHES)
    return median(times)


def swept(model: Attention, num_reqs: int, context: int, copy: float) -> list[dict[str, Any]]:
    """Every candidate; those that the compiler refuses with what it said."""
    q, cache, batch = case(model, num_reqs, context)
    scale = model.head_dim**-0.5
    used = decode_tile(model.head_dim, q.element_size())
    expected = paged_decode(q, cache, batch, scale)
    num_bytes = 2 * num_reqs * context * model.num_kv_heads * model.head_dim * q.element_size()
    found = []
    for tile in dict.fromkeys([used, *DECODE_CANDIDATES]):
        row: dict[str, Any] = {"tile": tile._asdict(), "is_used": tile == used}
        try:
            out = paged_decode(q, cache, batch, scale, None, tile)
            torch.testing.assert_close(out, expected, rtol=2e-2, atol=2e-2)
            took = max(
                seconds(lambda tile=tile: paged_decode(q, cache, batch, scale, None, tile)), 1e-12
            )
            row |= {"seconds": took, "copy_share": num_bytes / took / copy}
        except Exception as error:  # one tile that does not compile leaves the others
            row["error"] = str(error).splitlines()[0]
        found.append(row)
    return found


def words(row: dict[str, Any]) -> str:
    """A line of the table."""
    tile = DecodeTile(**row["tile"])
    what = f"{tile.num_keys:4} keys {tile.num_warps} warps {tile.num_stages} stages"
    used = "  (used)" if row["is_used"] else ""
    if "error" in row:
        return f"  {what}  {row['error']}{used}"
    return f"  {what}  {row['seconds'] * 1e6:8.1f} µs  {percent(row['copy_share'])} of a copy{used}"


def main() -> None:
    """Sweep, and write what there is after each context."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("result", type=Path)
    parser.add_argument("--small", action="store_true", help="Shows that it runs.")
    given = parser.parse_args()
    contexts, num_reqs, copied = CONTEXTS, NUM_REQS, COPY_BYTES
    if given.small:
        contexts, num_reqs, copied = SMALL_CONTEXTS, SMALL_NUM_REQS, SMALL_COPY_BYTES
    torch.manual_seed(0)
    copy = copy_bytes_per_second(torch.device("cuda"), copied, seconds=1.0)
    result: dict[str, Any] = {
        "machine": describe(),
        "copy_bytes_per_second": copy,
        "num_reqs": num_reqs,
        "swept": [],
    }
    for name, model in MODELS.items():
        for context in contexts:
            rows = swept(model, num_reqs, context, copy)
            result["swept"].append({"model": name, "context": context, "tiles": rows})
            given.result.write_bytes(indented(result))
            print(f"{name}, context {context:,}", *map(words, rows), sep="\n", flush=True)


if __name__ == "__main__":
    main()

"""Do two trees of vLLM do the same under random schedules? For changes that may change nothing.

Each seed draws how vLLM's scheduler is set up (prefix caching, asynchronous scheduling, drafts,
model runner, policy, statistics, a pool of 20 to 120 blocks) and requests that come, are aborted,
preempted and ended, some with images; the scheduler and the output processor are driven in both
trees, and all they hand out compared: what each step sends to the workers, block ids and free
blocks, outputs, request outputs, latencies. A tree is a release that was prepared or a folder.

    git -C vllm am ../gcbench/docs/vllm-patches/*.patch
    python -m benchmarks.random_schedules 0.33.0 vllm --seeds 0 174

Ends with 1 where they differ, and says from which step on.
"""

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from engines.vllm.launch import launch_vllm
from engines.vllm.model_folder import model_folder
from engines.vllm.settings import HOST_PATH_VARIABLE

_INSIDE = Path(__file__).with_name("random_schedules_inside.py")
_SETTLED = {
    HOST_PATH_VARIABLE: "1",
    "HF_HUB_OFFLINE": "1",
    "PYTHONHASHSEED": "0",  # sets of names are handed out, in an order that it decides
    "VLLM_CPU_KVCACHE_SPACE": "2",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_PLUGINS": "gcbench",
}


def schedules_of(tree: str, seeds: list[int]) -> list[dict[str, Any]]:
    """A record for each seed, see `random_schedules_inside`."""
    where = launch_vllm("", tree)
    path = os.pathsep.join([where.environment["PYTHONPATH"], str(_INSIDE.parents[1])])
    done = subprocess.run(
        [where.interpreter, "-P", _INSIDE, model_folder("opt-125m"), *map(str, seeds)],
        env={**os.environ, **where.environment, **_SETTLED, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def differences(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> Iterator[str]:
    """A line for each seed in which they part, with what was noted last before."""
    for one, other in zip(first, second, strict=True):
        if (one["digests"], one["error"]) == (other["digests"], other["error"]):
            continue
        pairs = zip(one["digests"], other["digests"], strict=False)
        at = next((place for place, (a, b) in enumerate(pairs) if a != b), None)
        where = "at their ends" if at is None else f"from note {at} of {len(one['digests'])} on"
        raised = "".join(f"; raised {each['error']}" for each in (one, other) if each["error"])
        yield f"seed {one['seed']}: they differ {where}{raised}"


def main() -> int:
    """Drive both trees, and say what was compared."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.random_schedules")
    parser.add_argument("trees", nargs=2, metavar="TREE")
    parser.add_argument("--seeds", nargs=2, type=int, default=[0, 174], metavar=("FIRST", "END"))
    asked = parser.parse_args()
    seeds = list(range(*asked.seeds))
    with ThreadPoolExecutor() as threads:
        found = list(threads.map(schedules_of, asked.trees, [seeds, seeds]))
    counts: Counter[str] = Counter()
    for each in found[0]:
        counts.update(each["counts"])
    said = ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items()))
    print(f"{len(seeds)} schedules: {said}")
    differ = list(differences(*found))
    print("\n".join(differ) or "the same in both trees")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())

"""Do two trees do the same under random schedules? For changes that may change nothing.

Each seed draws how a scheduler is set up and requests that come, are aborted, preempted and ended;
both trees are driven by it, and all they hand out is compared. Of vLLM it draws prefix caching,
asynchronous scheduling, drafts, model runner, policy, statistics, images and a pool of 20 to 120
blocks, and compares what each step sends to the workers, block ids and free blocks, outputs,
request outputs, latencies. Of SGLang it draws radix cache, event loop, chunks, a pool that may be
full, and streaming, and compares each field of each message to the detokenizer and, after each
turn, batch, queue and free tokens. A tree is a release that was prepared or a folder.

    git -C vllm am ../gcbench/docs/vllm-patches/*.patch
    python -m benchmarks.random_schedules 0.33.0 vllm --seeds 0 174
    python -m benchmarks.random_schedules 0.5.23 sglang --of sglang --seeds 0 40

Ends with 1 where they differ, and says from which step on.
"""

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from engines.protocol import Launch
from engines.registry import ENGINES
from engines.vllm.model_folder import model_folder
from engines.vllm.settings import HOST_PATH_VARIABLE

_HERE = Path(__file__).parent
_SETTLED = {
    HOST_PATH_VARIABLE: "1",
    "HF_HUB_OFFLINE": "1",
    "PYTHONHASHSEED": "0",  # sets of names are handed out, in an order that it decides
    "VLLM_CPU_KVCACHE_SPACE": "2",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_PLUGINS": "gcbench",
}


class _Driven(NamedTuple):
    """The engine whose launch it takes, and what comes before the seeds."""

    engine: str
    arguments: Callable[[], list[str]]


DRIVEN = {
    "vllm": _Driven("vllm-hostpath", lambda: [model_folder("opt-125m")]),
    "sglang": _Driven("sglang-hostpath", list),
}
"""By the name that ``random_schedules_of_NAME`` ends in."""


def schedules_of(tree: str, seeds: list[int], of: str = "vllm") -> list[dict[str, Any]]:
    """A record for each seed, see ``random_schedules_of_vllm``."""
    driven = DRIVEN[of]
    where: Launch = ENGINES.load(driven.engine).launch("", tree)
    path = os.pathsep.join([where.environment["PYTHONPATH"], str(_HERE.parent)])
    inside = _HERE / f"random_schedules_of_{of}.py"
    done = subprocess.run(
        [where.interpreter, "-P", inside, *driven.arguments(), *map(str, seeds)],
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
    parser.add_argument("--of", choices=DRIVEN, default="vllm")
    parser.add_argument("--seeds", nargs=2, type=int, default=[0, 174], metavar=("FIRST", "END"))
    asked = parser.parse_args()
    seeds = list(range(*asked.seeds))
    with ThreadPoolExecutor() as threads:
        found = list(threads.map(schedules_of, asked.trees, [seeds] * 2, [asked.of] * 2))
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

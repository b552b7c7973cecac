"""Do load generators say the same of one server on one schedule?

Each keeps so many streams of a `gcbench serve` busy, a modelled Llama-3-8B on an H200, until so
many requests of 48 prompt and 64 output tokens have ended. They take turns, so a round is a pair of
any two of them: ratios to `gcbench load` with their 95 % intervals over the rounds, from three on.

    python -m benchmarks.load_agreement [--vllm PYTHON] [--guidellm PYTHON] [--aiperf PYTHON] \
        [--inference-perf PYTHON] [--rounds N] [--requests N] [--streams N]

PYTHON is that of an environment with the tool in it; of vLLM that of `make vllm` is the default.
``guidellm`` reports no single gaps. The last line of output is one JSON document; `--add FILE` puts
the rounds of such documents before this one's, so that rounds may be run one by one.
"""

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.load_generators import Asked, add_pythons, found
from harness.load.served import served
from harness.statistics.paired_ratio import FEWEST_PAIRS, paired_ratio

SERVER = [
    "--axis",
    "model=llama-3-8b",
    "--axis",
    "device-profile=llama-3-8b-h200",
    "--batch-size",
    "64",
]
FIGURES = ("ttft_mean", "tpot_mean", "itl_median", "output_throughput", "cpu")


def ratios(rounds: list[dict[str, dict[str, Any]]], tool: str) -> dict[str, str]:
    """Of a tool's figures to ours, over the rounds, in words."""
    said = {}
    for figure in FIGURES:
        ours, theirs = ([each[name][figure] for each in rounds] for name in ("gcbench", tool))
        if not all(theirs) or len(rounds) < FEWEST_PAIRS:  # not said, or 0: no ratio
            said[figure] = "-"
            continue
        found = paired_ratio(ours, theirs)
        low, high = found.ci95
        said[figure] = f"{found.ratio:.3f} ({low:.3f} to {high:.3f})"
    return said


def main() -> None:
    """Print a table and the document."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_pythons(parser)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--requests", type=int, default=320)
    parser.add_argument("--streams", type=int, default=32)
    parser.add_argument("--add", action="append", default=[], type=Path, metavar="FILE")
    asked = parser.parse_args()
    rounds: list[dict[str, dict[str, Any]]] = [
        each for path in asked.add for each in json.loads(path.read_text().splitlines()[-1])
    ]
    with tempfile.TemporaryDirectory() as name:
        for turn in range(asked.rounds):
            said: dict[str, dict[str, Any]] = {}
            for tool, run in found(asked).items():
                (own := Path(name) / f"{turn}-{tool}").mkdir()
                with served(SERVER, own) as server:
                    what = Asked(server.url, server.model, asked.requests, 64, asked.streams)
                    said[tool] = run(what, own)._asdict()
                print(f"{tool}: {said[tool]}", flush=True)
            rounds.append(said)
    print(f"{'':16}" + "".join(f"{each:>26}" for each in FIGURES))
    for tool in list(rounds[0])[1:]:
        print(f"{tool:16}" + "".join(f"{each:>26}" for each in ratios(rounds, tool).values()))
    print(json.dumps(rounds))


if __name__ == "__main__":
    main()

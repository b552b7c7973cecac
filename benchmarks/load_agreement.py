"""Do `gcbench load` and `vllm bench serve` say the same of one server on one schedule?

Both replay the same Mooncake trace, a Poisson process of requests with prompts of 16 to 256 and
outputs of 32 to 128 tokens, against one `gcbench serve` of a modelled Llama-3-8B on an H200, in
turn. Medians over the rounds: mean TTFT within 3 % or 1 ms, mean TPOT and throughput within 3 %.

    python -m benchmarks.load_agreement [--vllm PYTHON] [--rounds N] [--requests N] [--rate R]

The environment of `make vllm` is used unless PYTHON is that of another one. The last line of output
is one JSON document.
"""

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.load_generators import Asked, Said, found
from harness.load.served import served

SERVER = [
    "--axis",
    "model=llama-3-8b",
    "--axis",
    "device-profile=llama-3-8b-h200",
    "--batch-size",
    "64",
]
FIGURES = ("ttft_mean", "tpot_mean", "request_throughput", "output_throughput")
WITHIN = 0.03
TTFT_WITHIN_MS = 1.0


def write_trace(path: Path, num_requests: int, rate: float) -> None:
    """No two prompts share anything."""
    rng = np.random.default_rng(0)
    arrivals = (1e3 * np.cumsum(rng.exponential(1 / rate, num_requests))).round().astype(int)
    lines = [
        json.dumps(
            {
                "timestamp": int(at),
                "input_length": int(prompt),
                "output_length": int(out),
                "hash_ids": [number],
            }
        )
        for number, (at, prompt, out) in enumerate(
            zip(
                arrivals - arrivals[0],
                rng.integers(16, 257, num_requests),
                rng.integers(32, 129, num_requests),
                strict=True,
            )
        )
    ]
    path.write_text("\n".join(lines) + "\n")


def agree(name: str, ours: float, theirs: float) -> bool:
    """Whether a figure is as near as is asked for."""
    if name == "ttft_mean" and abs(ours - theirs) <= TTFT_WITHIN_MS:
        return True
    return abs(ours / theirs - 1) <= WITHIN


def main() -> None:
    """Print a table and the document."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vllm", default="", metavar="PYTHON")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=80)
    parser.add_argument("--rate", type=float, default=4.0, help="requests a second")
    asked = parser.parse_args()
    generators = found(asked.vllm, "", "")
    rounds: dict[str, list[Said]] = {name: [] for name in generators}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_trace(trace := folder / "trace.jsonl", asked.requests, asked.rate)
        with served(SERVER, folder) as server:
            for turn in range(asked.rounds):
                for tool, run in generators.items():
                    (own := folder / f"{turn}-{tool.split()[0]}").mkdir()
                    said = run(Asked(server.url, server.model, asked.requests, trace=trace), own)
                    rounds[tool].append(said)
                    print(f"{tool}: {said}", flush=True)
    ours, theirs = rounds.values()
    print(f"{'median of ' + str(asked.rounds):24}" + "".join(f"{each:>18}" for each in generators))
    verdicts = {}
    for figure in FIGURES:
        a, b = (float(np.median([getattr(s, figure) for s in each])) for each in (ours, theirs))
        verdicts[figure] = agree(figure, a, b)
        word = "agree" if verdicts[figure] else "differ"
        print(f"{figure:24}{a:18.3f}{b:18.3f}   {a / b - 1:+.2%}, {word}")
    invalid = [each.invalid for each in ours if each.invalid]
    print(f"invalid runs of gcbench load: {len(invalid)} {invalid[:1]}")
    print(
        json.dumps(
            {"rounds": {k: [s._asdict() for s in v] for k, v in rounds.items()}, "agree": verdicts}
        )
    )


if __name__ == "__main__":
    main()

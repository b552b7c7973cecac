"""How much CPU does each load generator take per token that arrives by itself?

A server that computes nothing sends 25 tokens a second to each stream. Each generator takes so many
streams twice, few and many, over the same time: the difference in CPU, of all of its processes,
over the difference in tokens leaves out what start-up, idling and the end cost.

    python -m benchmarks.load_cpu [--vllm PYTHON] [--guidellm PYTHON] [--aiperf PYTHON] \
        [--inference-perf PYTHON]

PYTHON is that of an environment with the tool in it; of vLLM that of `make vllm` is the default.
`gcbench load` reads what it has stamped after the run, so it has two figures: of the run alone, and
with the reading. The last line of output is one JSON document.
"""

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.load_generators import Asked, Said, add_pythons, found
from tests.harness.load.scripted_server import ScriptedServer

GAP_SECONDS = 0.04


def main() -> None:
    """Print a table and the document."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_pythons(parser)
    parser.add_argument("--few", type=int, default=8, help="streams")
    parser.add_argument("--many", type=int, default=128)
    parser.add_argument("--tokens", type=int, default=500, help="of each stream")
    parser.add_argument("--repeats", type=int, default=1)
    asked = parser.parse_args()
    costs: dict[str, list[float]] = {}
    more = (asked.many - asked.few) * asked.tokens
    with tempfile.TemporaryDirectory() as name:
        for turn in range(asked.repeats):
            for tool, run in found(asked).items():
                said: list[Said] = []
                for streams in (asked.few, asked.many):
                    (own := Path(name) / f"{turn}-{tool.split()[0]}-{streams}").mkdir()
                    with ScriptedServer(gaps=[GAP_SECONDS]) as server:
                        said.append(run(Asked(server.url, "scripted", streams, asked.tokens), own))
                costs.setdefault(tool, []).append(1e6 * (said[1].cpu - said[0].cpu) / more)
                if said[0].run_cpu is not None and said[1].run_cpu is not None:
                    run_alone = 1e6 * (said[1].run_cpu - said[0].run_cpu) / more
                    costs.setdefault(f"{tool}, run alone", []).append(run_alone)
    medians = {tool: float(np.median(each)) for tool, each in costs.items()}
    base = medians["gcbench"]
    print(f"{'µs of CPU per token':28}{'':10}  times gcbench")
    for tool, cost in medians.items():
        print(f"{tool:28}{cost:10.1f}  {cost / base:.1f}")
    print(
        json.dumps(
            {"few": asked.few, "many": asked.many, "tokens": asked.tokens, "us_per_token": costs}
        )
    )


if __name__ == "__main__":
    main()

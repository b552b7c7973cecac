"""What does each load generator say of a server whose gaps between tokens are known?

A server that computes nothing sends a token every 250 ms, then one after 400 and 100 ms in turn,
and stamps each by the clock of this machine. Beside the truth: gcbench load, vllm bench serve,
guidellm and aiperf, as many as there are.

    python -m benchmarks.load_gaps [--vllm PYTHON] [--guidellm PYTHON] [--aiperf PYTHON] \
        [--inference-perf PYTHON]

PYTHON is that of an environment with the tool in it; of vLLM that of `make vllm` is the default.
The last line of output is one JSON document.
"""

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.load_generators import Asked, add_pythons, found
from tests.harness.load.scripted_server import ScriptedServer

SCRIPTS = {"250": [0.25], "400, 100": [0.4, 0.1]}
REQUESTS, TOKENS = 8, 21
COLUMNS = ("tpot_mean", "itl_median", "itl_max")


def truth(stamps: list[list[int]]) -> dict[str, float]:
    """Of the server's own stamps, milliseconds; only of requests as long as was asked for, since
    some tools send one of their own first.
    """
    own = np.array([each for each in stamps if len(each) == TOKENS][-REQUESTS:]) / 1e6
    gaps = np.diff(own, axis=1)
    return {
        "tpot_mean": float(gaps.mean()),
        "itl_median": float(np.median(gaps)),
        "itl_max": float(gaps.max()),
    }


def cell(said: float | None, true: float) -> str:
    """What a tool says, and by how much it is off."""
    return f"{'-':>24}" if said is None else f"{said:12.2f} ({said - true:+9.2f})"


def main() -> None:
    """Print a table for each script and the document."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_pythons(parser)
    asked = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        for script, gaps in SCRIPTS.items():
            print(
                f"gaps of {script} ms{'':8}"
                + "".join(f"{each:>24}" for each in COLUMNS)
                + f"{'ttft_mean':>12}"
            )
            for tool, run in found(asked).items():
                (own := Path(name) / f"{tool.split()[0]}-{len(rows)}").mkdir()
                with ScriptedServer(gaps=gaps) as server:
                    said = run(Asked(server.url, "scripted", REQUESTS, TOKENS), own)._asdict()
                    true = truth(server.seen()["stamps"])
                cells = "".join(cell(said[each], true[each]) for each in COLUMNS)
                print(f"{tool:24}{cells}{said['ttft_mean']:12.2f}", flush=True)
                rows.append({"gaps": script, "tool": tool, "said": said, "true": true})
    print("in brackets: what it says less what the server's own stamps say")
    print(json.dumps(rows))


if __name__ == "__main__":
    main()

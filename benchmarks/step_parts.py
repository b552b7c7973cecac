"""What does a step of each vLLM release cost by its batch and context?

vLLM's own scheduler and output processing (`gcbench run --mode grid --engine vllm-hostpath`), in
bytecodes, which repeat to the digit on one version of Python.

    python -m benchmarks.step_parts 0.13.0 0.33.0

The last line of output is one JSON document.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import msgspec

from harness.machine.describe import code_identity, describe
from harness.metrics import STEP_PARTS

_ROOT = Path(__file__).parents[1]
_SHORT = ("--output-lens", "4", "--num-requests", "1024")
"""The grid asks for requests of its own."""


def parts(release: str) -> dict[str, float]:
    """Bytecodes of each part, and the rest that they leave of a step."""
    command = [sys.executable, "-m", "gcbench", "run", "--mode", "grid", *_SHORT]
    command += ["--engine", "vllm-hostpath", "--device", "null", "--release", release]
    done = subprocess.run(
        [*command, "--json", "-"], cwd=_ROOT, capture_output=True, text=True, check=True
    )
    metrics = json.loads(done.stdout)["trial"]["metrics"]
    found = {part: metrics[f"bytecodes_per_{part}"] for part in STEP_PARTS}
    return {**found, "rest": metrics["cost_model_rest"]}


def main() -> None:
    """One release after the other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("releases", nargs="+", metavar="RELEASE")
    asked = parser.parse_args().releases
    found = {}
    for release in asked:
        found[release] = parts(release)
        print(release, *(f"{name} {value:,g}" for name, value in found[release].items()))
    commit = code_identity(_ROOT)[1]
    command = f"python -m benchmarks.step_parts {' '.join(asked)}"
    machine = msgspec.to_builtins(describe())
    known = {"command": command, "code_commit": commit, "machine": machine}
    print(json.dumps({**known, "releases": found}))


if __name__ == "__main__":
    main()

"""Does `gcbench load --sweep` find where a server's throughput ends, where that is known?

The modelled device takes the same time for each step, so a batch of B requests of L tokens gives
B / ((L + 1) · step) requests per second: a slot is free one step after its last token, since the
next step has begun by then. Each run has a server and a seed of its own; it is right within 5 %.

    python -m benchmarks.load_sweep [--runs N] [--seed N] [--kind rate|concurrency]

The last line of output is one JSON document.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from engines.builtin.device.profile import SHIPPED_PROFILES
from harness.load.served import served

STEP_SECONDS, BATCH, TOKENS = 0.02, 16, 12
CAPACITY = BATCH / ((TOKENS + 1) * STEP_SECONDS)
WITHIN = 0.05
START = {"rate": "rate:32", "concurrency": "concurrency"}


def flat_profile(folder: Path) -> Path:
    """A device each of whose steps takes that long."""
    shipped = (SHIPPED_PROFILES / "opt-125m-h200.toml").read_text().splitlines()
    lines = [each for each in shipped if not each.startswith(("name", "launch_overhead", "source"))]
    lines += ['name = "flat"', 'source = "assumed"', f"launch_overhead_seconds = {STEP_SECONDS}"]
    path = folder / "flat.toml"
    path.write_text("\n".join(lines))
    return path


def sweep(kind: str, seed: int, folder: Path) -> dict[str, object]:
    """What it says of a server of its own."""
    flags = ["--axis", f"device-profile={flat_profile(folder)}", "--batch-size", str(BATCH)]
    with served(flags, folder) as server:
        command = [sys.executable, "-m", "gcbench", "load", server.url, "--sweep", START[kind]]
        command += ["--duration", "3", "--seed", str(seed), "--prompt-lens", "8"]
        command += ["--output-lens", str(TOKENS), "--output", str(folder / "runs"), "--wait", "no"]
        command += ["--quiet", "--json", str(folder / "sweep.json")]
        subprocess.run(command, check=False, capture_output=True)
    said: dict[str, object] = json.loads((folder / "sweep.json").read_bytes())
    return said


def main() -> None:
    """Print a line per run, how many are right, and the document."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0, help="of the first run")
    parser.add_argument("--kind", choices=sorted(START), default="rate")
    asked = parser.parse_args()
    truth = CAPACITY if asked.kind == "rate" else CAPACITY * (TOKENS + 1) * STEP_SECONDS
    found = []
    for seed in range(asked.seed, asked.seed + asked.runs):
        with tempfile.TemporaryDirectory() as name:
            said = sweep(asked.kind, seed, Path(name))
        knee = said["knee"]
        print(seed, f"truth {truth:.2f}", knee, said["notes"], flush=True)
        found.append(knee)
    right = sum(each is not None and abs(each["value"] / truth - 1) <= WITHIN for each in found)  # type: ignore[index]
    print(f"{right} of {asked.runs} within {WITHIN:.0%}")
    print(json.dumps({"kind": asked.kind, "truth": truth, "knees": found}))


if __name__ == "__main__":
    main()

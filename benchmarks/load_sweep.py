"""Does `gcbench load --sweep` find where a server's throughput ends, where that is known?

The modelled device takes the same time for each step, so a batch of B requests of L tokens gives
B / ((L + 1) · step) requests per second: a slot is free one step after its last token, since the
next step has begun by then. A stream whose answer has ended waits for a step, too, until its next
request is begun: with answers of 48 tokens that is 2 % of a request, and 16 streams fill 16 places.
Each run has a server and a seed of its own; it is right within 5 %.

    python -m benchmarks.load_sweep [--runs N] [--seed N] [--kind rate|concurrency]

The last line of output is one JSON document.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from engines.builtin.device.profile import SHIPPED_PROFILES
from harness.load.served import served

BATCH = 16
WITHIN = 0.05


class Kind(NamedTuple):
    """``start``: where the sweep begins; ``tokens``: of an answer."""

    start: str
    step_seconds: float
    tokens: int

    @property
    def truth(self) -> float:
        """Requests per second, or streams."""
        if self.start == "concurrency":
            return BATCH
        return BATCH / ((self.tokens + 1) * self.step_seconds)


KINDS = {"rate": Kind("rate:32", 0.02, 12), "concurrency": Kind("concurrency", 0.005, 48)}


def flat_profile(folder: Path, step_seconds: float) -> Path:
    """A device each of whose steps takes that long."""
    shipped = (SHIPPED_PROFILES / "opt-125m-h200.toml").read_text().splitlines()
    lines = [each for each in shipped if not each.startswith(("name", "launch_overhead", "source"))]
    lines += ['name = "flat"', 'source = "assumed"', f"launch_overhead_seconds = {step_seconds}"]
    path = folder / "flat.toml"
    path.write_text("\n".join(lines))
    return path


def sweep(kind: Kind, seed: int, folder: Path) -> dict[str, object]:
    """What it says of a server of its own."""
    flags = [
        "--axis",
        f"device-profile={flat_profile(folder, kind.step_seconds)}",
        "--batch-size",
        str(BATCH),
    ]
    with served(flags, folder) as server:
        command = [sys.executable, "-m", "gcbench", "load", server.url, "--sweep", kind.start]
        command += ["--duration", "3", "--seed", str(seed), "--prompt-lens", "8"]
        command += [
            "--output-lens",
            str(kind.tokens),
            "--output",
            str(folder / "runs"),
            "--wait",
            "no",
        ]
        command += ["--quiet", "--json", str(folder / "sweep.json")]
        subprocess.run(command, check=False, capture_output=True)
    said: dict[str, object] = json.loads((folder / "sweep.json").read_bytes())
    return said


def main() -> None:
    """Print a line per run, how many are right, and the document."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0, help="of the first run")
    parser.add_argument("--kind", choices=sorted(KINDS), default="rate")
    asked = parser.parse_args()
    kind = KINDS[asked.kind]
    found = []
    for seed in range(asked.seed, asked.seed + asked.runs):
        with tempfile.TemporaryDirectory() as name:
            said = sweep(kind, seed, Path(name))
        knee = said["knee"]
        print(seed, f"truth {kind.truth:.2f}", knee, said["notes"], flush=True)
        found.append(knee)
    right = sum(
        each is not None and abs(each["value"] / kind.truth - 1) <= WITHIN for each in found
    )  # type: ignore[index]
    print(f"{right} of {asked.runs} within {WITHIN:.0%}")
    print(json.dumps({"kind": asked.kind, "truth": kind.truth, "knees": found}))


if __name__ == "__main__":
    main()

"""Do requests reach a real server as scheduled, sent by one client process and by four?

Constant, Poisson and gamma arrivals go to a `gcbench serve` of the null device by `gcbench load`.
What was sent is held against what was asked: CV of the gaps, lag-1 correlation, dispersion.

    python -m benchmarks.load_arrivals [--rate R] [--requests N]

The last line of output is one JSON document.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from harness.load.served import served

SERVER = ["--device", "null", "--batch-size", "64"]
ARRIVALS = ("constant:{:g}", "poisson:{:g}", "gamma:{:g}:0.25")
PROCESSES = (1, 4)


def run(url: str, arrivals: str, processes: int, requests: int, folder: Path) -> dict[str, Any]:
    """One run: what its self-check says, and why the run is invalid, if it is."""
    path = folder / "result.json"
    subprocess.run(
        [
            sys.executable,
            "-m",
            "gcbench",
            "load",
            url,
            "--axis",
            f"arrivals={arrivals}",
            "--num-requests",
            str(requests),
            "--output-lens",
            "4",
            "--prompt-lens",
            "16",
            "--client-processes",
            str(processes),
            "--seed",
            "1",
            "--quiet",
            "--output",
            str(folder / "runs"),
            "--json",
            str(path),
        ],
        check=False,
    )
    result = json.loads(path.read_bytes())
    found = {
        name: value
        for name, value in result["trial"]["metrics"].items()
        if name.startswith("arrival")
    }
    return {
        "arrivals": arrivals,
        "processes": processes,
        "words": result["trial"]["delivered"],
        "invalid": result["trial"]["invalid"],
        **found,
    }


def main() -> None:
    """Print a line for each run and the document."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rate", type=float, default=50.0, help="requests a second")
    parser.add_argument("--requests", type=int, default=1000)
    asked = parser.parse_args()
    runs = []
    with tempfile.TemporaryDirectory() as name, served(SERVER, folder := Path(name)) as server:
        for arrivals in (each.format(asked.rate) for each in ARRIVALS):
            for processes in PROCESSES:
                ran = run(server.url, arrivals, processes, asked.requests, folder)
                runs.append(ran)
                print(f"{arrivals}, {processes} processes: {ran['words']}", flush=True)
                if ran["invalid"]:
                    print(f"  invalid: {ran['invalid']}", flush=True)
    print(json.dumps(runs))


if __name__ == "__main__":
    main()

"""All that needs a GPU, in under ten minutes: the tests, the aims, and #26368 measured on it.

    python benchmarks/gpu_check.py [tests] [aims] [verdict] [grid] [--output DIR]

tests: kernels against float64, graphs against eager steps, every representation. aims: OPT-125m
and Llama-3-8B at batch 1,024, flat_arrays read by column, overlapped; requests a second and the
share of the copy bandwidth. verdict: list_of_lists against list_of_arrays as #26368 had them,
seven rounds. grid: lists and arrays, inline and overlapped, default and frozen, three rounds:
whether async scheduling makes the collector's cost vanish. Results are written as JSON to DIR;
what the time does not suffice for is named at the end.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # gcbench need not be installed where a GPU is

from harness.files import indented  # noqa: E402
from harness.format import percent  # noqa: E402
from harness.machine.describe import describe  # noqa: E402

RUNS = ROOT / "results" / "runs"
BUDGET_SECONDS = 570.0
PARTS = ("tests", "aims", "verdict", "grid")
AIMS = {"opt125m-48-2000": 45.0, "opt125m-48-500": 500.0, "llama3-8b-48-500": 40.0}
"""Requests a second at batch 1,024."""
FASTEST = ["--representation", "flat_arrays", "--delivery", "columnar", "--gc", "freeze",
           "--output-processing", "overlapped"]  # fmt: skip
VERDICT = ["--workload", "opt125m-48-200", "--heap-objects", "700000", "--gc", "default",
           "--representation", "list_of_lists,list_of_arrays", "--delivery", "per_request",
           "--rounds", "7", "--no-counting"]  # fmt: skip
GRID = ["--workload", "opt125m-48-200", "--heap-objects", "700000", "--gc", "default,freeze",
        "--representation", "list_of_lists,flat_arrays", "--delivery", "per_request,columnar",
        "--output-processing", "inline,overlapped", "--rounds", "3", "--no-counting"]  # fmt: skip


class Check:
    """Runs the parts one after the other, each in processes of its own, until time is up."""

    def __init__(self, output: Path) -> None:
        self._output = output
        self._end = time.monotonic() + BUDGET_SECONDS
        self.missing: list[str] = []
        self.failed: list[str] = []

    def python(self, what: str, *arguments: str) -> bool:
        """Run ``python ARGUMENTS``; False, and noted, where it fails or there is no time left."""
        left = self._end - time.monotonic()
        if left < 5:
            self.missing.append(what)
            return False
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(
            [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])}  # fmt: skip
        print(f"\n== {what}, {left:.0f} s left", flush=True)
        process = subprocess.Popen([sys.executable, *arguments], cwd=ROOT, env=environment)
        try:
            status = process.wait(timeout=left)
        except subprocess.TimeoutExpired:
            process.terminate()
            process.wait()
            self.missing.append(what)
            return False
        if status:
            self.failed.append(f"{what} (status {status})")
        return status == 0

    def gcbench(self, what: str, path: Path, command: str, *arguments: str) -> bool:
        """Run ``gcbench COMMAND`` on the GPU and leave its JSON at ``path``."""
        path.unlink(missing_ok=True)
        # Relative: a result says by what command it came about, not where.
        runs, to = (os.path.relpath(each, ROOT) for each in (RUNS / what, path))
        given = ("--device", "cuda", "--batch-size", "1024", "--output", runs, "--json", to)
        return self.python(what, "-m", "harness", command, *given, *arguments)

    def compare(self, what: str, *arguments: str) -> None:
        """An experiment whose JSON is the result."""
        self.gcbench(what, self._output / f"{what}.json", "compare", *arguments)

    def aims(self) -> None:
        """Each workload once, at its fastest."""
        found = {}
        for workload, aim in AIMS.items():
            RUNS.mkdir(parents=True, exist_ok=True)
            path = RUNS / f"gpu-{workload}.json"
            if not self.gcbench(workload, path, "run", "--workload", workload, *FASTEST):
                continue
            metrics = json.loads(path.read_text())["metrics"]
            found[workload] = {"aim_request_throughput": aim, "metrics": metrics}
            reached = metrics["request_throughput"]
            print(
                f"{workload}: {reached:.1f} req/s, aim {aim:.0f}, "
                f"{'reached' if reached >= aim else 'NOT reached'}; "
                f"{percent(metrics['achieved_bandwidth_share'])} of the copy bandwidth, "
                f"{percent(metrics['achieved_flops_share'])} of the matrix products' rate",
                flush=True,
            )
        if found:
            result = {"machine": describe(), "flags": FASTEST, "workloads": found}
            (self._output / "gpu-aims.json").write_bytes(indented(result))


def main() -> int:
    """Run what was asked for; 1 where something failed, 3 where nothing could be run."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--output", type=Path, default=ROOT / "results" / "published")
    given = parser.parse_args()
    parts = given.parts or PARTS
    if unknown := set(parts) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    import torch

    if not torch.cuda.is_available():
        print("gpu-check: torch finds no CUDA device here")
        return 3
    given.output.mkdir(parents=True, exist_ok=True)
    check = Check(given.output.resolve())
    if "tests" in parts:
        check.python("tests", "-m", "pytest", "-q", "-m", "gpu", "-p", "no:cacheprovider", "tests")
    if "aims" in parts:
        check.aims()
    if "verdict" in parts:
        check.compare("gpu-26368-verdict", *VERDICT)
    if "grid" in parts:
        check.compare("gpu-26368-grid", *GRID)
    for words, what in (("failed", check.failed), ("no time left for", check.missing)):
        if what:
            print(f"gpu-check: {words}: {', '.join(what)}")
    return 1 if check.failed or check.missing else 0


if __name__ == "__main__":
    sys.exit(main())

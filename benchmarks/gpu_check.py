"""All that needs a GPU, in parts that fit into three calls of under ten minutes; docs/gpu.md.

    python benchmarks/gpu_check.py [PART ...] [--output DIR] [--seconds N] [--before TREE]
        [--rehearse]

tests: kernels against float64, graphs against eager steps, every representation. tiles: the decode
kernel alone, in every tile of the sweep. copies: what it takes to read tokens, and to hand them to
another process. kernels: a decode step's time by kernel. launch: what launching a step takes the
host, beside TREE's, another checkout's, if there is one. aims: OPT-125m and Llama-3-8B at batch
1,024 at their fastest. verdict: #26368's second test, lists against an array per request, read per
request and as columns, default and frozen. long, long_rest: its first test with the default
collector, rounds 1 to 5 and 6 to 7, which `gcbench report --merge` joins. long_freeze: the same
frozen, three rounds. calibrate: a profile of this GPU, and that profile beside the GPU. grid: lists
and arrays, inline and overlapped, default and frozen. churn: graphs against eager steps where
prompts run beside rows that decode.

Each part writes gpu-PART.json into DIR as it goes, and gpu-clocks.csv gets a line each second;
DIR/runs keeps the trials, and with the same DIR a comparison goes on where it was stopped. What
the time does not suffice for is named at the end. ``--rehearse`` makes the same calls at sizes that
a CPU computes, on a stand-in for torch.cuda: it shows that they run, and measures nothing.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # gcbench need not be installed where a GPU is

from harness.files import indented  # noqa: E402
from harness.format import percent  # noqa: E402
from harness.machine.describe import describe  # noqa: E402

BUDGET_SECONDS = 560.0
TIME_TO_END = 20.0
"""For what is stopped to write what it has."""
AIMS = {"opt125m-48-500": 500.0, "llama3-8b-48-500": 40.0, "opt125m-48-2000": 45.0}
"""Requests per second at batch 1,024."""
FASTEST = [
    "--representation",
    "flat_arrays",
    "--delivery",
    "columnar",
    "--gc",
    "freeze",
    "--output-processing",
    "overlapped",
]
PROMPTS_AT_ONCE = ["--axis", "max-num-batched-tokens=49152"]
COMPARED = ["--workload", "opt125m-48-200", "--heap-objects", "700000", "--no-counting"]
THREE_CELLS = [
    "--heap-objects",
    "700000",
    "--no-counting",
    "--representation",
    "list_of_lists,list_of_arrays",
    "--delivery",
    "per_request,columnar",
]
"""Lists have no columns."""
VERDICT = [*THREE_CELLS, "--workload", "opt125m-48-500", "--gc", "default,freeze", "--rounds", "7"]
LONG = [*THREE_CELLS, "--workload", "opt125m-48-2000"]
LONG_DEFAULT = [*LONG, "--gc", "default", "--rounds", "7", "--shard"]
LONG_FREEZE = [*LONG, "--gc", "freeze", "--rounds", "3"]
GRID = [
    *COMPARED,
    "--gc",
    "default,freeze",
    "--representation",
    "list_of_lists,flat_arrays",
    "--delivery",
    "per_request,columnar",
    "--output-processing",
    "inline,overlapped",
    "--rounds",
    "3",
]
CHURN = [
    "--workload",
    "churn",
    "--heap-objects",
    "700000",
    "--no-counting",
    *FASTEST,
    "--axis",
    "enforce-eager=off,on",
    "--rounds",
    "3",
]
POINTS = [
    "--batch-size",
    "1,32,256,1024",
    "--context",
    "128,512,2000",
    "--prefill",
    "128,1024,1900",
]

# What replaces all that at a rehearsal. The last of two equal flags counts.
SMALL = [
    "--num-requests",
    "6",
    "--prompt-lens",
    "8",
    "--output-lens",
    "6",
    "--batch-size",
    "4",
    "--axis",
    "model=opt-tiny",
]
SMALL_POINTS = [
    "--model",
    "opt-tiny",
    "--batch-size",
    "1,2,4",
    "--context",
    "8,16",
    "--prefill",
    "8",
    "--rounds",
    "1",
]


class Check:
    """Runs parts one after the other, each in processes of its own, until time is up."""

    def __init__(
        self, output: Path, rehearses: bool, seconds: float, before: Path | None = None
    ) -> None:
        self.output = output
        self.before = before
        self.rehearses = rehearses
        self._end = self._part_ends = time.monotonic() + seconds
        self.missing: list[str] = []
        self.failed: list[str] = []

    def begin(self, seconds: float) -> None:
        """A part that may take so long."""
        self._part_ends = min(self._end, time.monotonic() + seconds)

    def python(self, what: str, *arguments: str, threads: str = "") -> bool:
        """Run ``python ARGUMENTS``; False, and noted, where it fails or there is no time left.

        ``threads``: how many torch has on the CPU; "": as many as it likes.
        """
        left = self._part_ends - time.monotonic()
        if left < TIME_TO_END:
            self.missing.append(what)
            return False
        print(f"\n== {what}, {left:.0f} s left", flush=True)
        process = subprocess.Popen(
            [sys.executable, *arguments], cwd=ROOT, env=self._environment(threads)
        )
        try:
            status = process.wait(timeout=left)
        except (subprocess.TimeoutExpired, KeyboardInterrupt) as reason:
            process.send_signal(signal.SIGINT)  # pytest and gcbench then write what they have
            self.missing.append(what)
            try:
                process.wait(timeout=TIME_TO_END)
            except subprocess.TimeoutExpired:
                process.kill()
            if isinstance(reason, KeyboardInterrupt):
                raise
            return False
        if status:
            self.failed.append(f"{what} (status {status})")
        return status == 0

    def _environment(self, threads: str) -> dict[str, str]:
        path = [str(ROOT), os.environ.get("PYTHONPATH", "")]
        more = {"OMP_NUM_THREADS": threads} if threads else {}
        if self.rehearses:
            path.insert(0, str(ROOT / "tests" / "gpu" / "rehearsal"))
            more |= {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
        return os.environ | more | {"PYTHONPATH": os.pathsep.join(filter(None, path))}

    def file(self, name: str) -> str:
        """Where ``gpu-NAME`` goes, from the root: a result says how it came about, not where."""
        return os.path.relpath(self.output / f"gpu-{name}", ROOT)

    def gcbench(self, what: str, command: str, *arguments: str, device: str = "cuda") -> bool:
        """Run ``gcbench COMMAND`` on the GPU and leave its JSON."""
        runs = self.output / "runs" / what
        own = ["--device", device, "--batch-size", "1024", "--output", os.path.relpath(runs, ROOT)]
        own += ["--json", self.file(f"{what}.json")]
        small = SMALL if self.rehearses else []
        if command == "compare":
            if self.rehearses:
                rounds = [] if "--shard" in arguments else ["--rounds", "1"]
                small = [*SMALL, *rounds, "--heap-objects", "0"]
            for plan in runs.glob("*/plan.json"):
                own += ["--resume", plan.parent.name]
        is_done = self.python(what, "-m", "harness", command, *own, *arguments, *small)
        tell_stages(runs)
        return is_done


def tell_stages(runs: Path) -> None:
    """Where the seconds of a trial went: the median of each stage."""
    each = [json.loads(path.read_text())["result"] for path in runs.glob("*/trials/*.json")]
    stages = [result["stage_seconds"] for result in each if result]
    if stages:
        names = dict.fromkeys(name for stage in stages for name in stage)
        medians = {name: median(stage.get(name, 0.0) for stage in stages) for name in names}
        print(f"seconds of a trial, medians of {len(stages)}:")
        for name, seconds in medians.items():
            print(f"  {name:8} {seconds:7.2f}")
        sys.stdout.flush()


def tests(check: Check) -> None:
    """Those on a GPU alone, without what the project's other tests need to be collected."""
    more = ["-k", "prompts_beside or heads_are_normed"] if check.rehearses else []
    if find_spec("xdist") and not check.rehearses:
        more = ["--numprocesses", "8"]  # most of their time is compiling
    check.python(
        "tests",
        "-m",
        "pytest",
        "-q",
        "-m",
        "gpu",
        "-p",
        "no:cacheprovider",
        "--confcutdir",
        "tests/gpu",
        "-o",
        "filterwarnings=default",
        f"--junit-xml={check.file('tests.xml')}",
        "tests/gpu",
        *more,
        threads="2",
    )


def tiles(check: Check) -> None:
    """The sweep of the decode kernel."""
    small = ["--small"] if check.rehearses else []
    check.python("tiles", "benchmarks/decode_tiles.py", check.file("tiles.json"), *small)


def copies(check: Check) -> None:
    """Tokens to the host, and to another process."""
    small = ["--small"] if check.rehearses else []
    check.python("copies", "benchmarks/token_copies.py", check.file("copies.json"), *small)


def kernels(check: Check) -> None:
    """Where a decode step's time goes."""
    small = ["--small"] if check.rehearses else []
    check.python("kernels", "benchmarks/kernel_times.py", check.file("kernels.json"), *small)


def launch(check: Check) -> None:
    """What launching takes, in turns with the commit before."""
    more = ["--small"] if check.rehearses else []
    if check.before is not None:
        more += ["--before", str(check.before)]
    check.python("launch", "benchmarks/launch_times.py", check.file("launch.json"), *more)


def aims(check: Check) -> None:
    """Each workload at its fastest, once with the prompts in chunks and once all in one step."""
    found = []
    for workload, aim in AIMS.items():
        for more in ([], PROMPTS_AT_ONCE):
            what = f"aim-{workload}{'-at-once' if more else ''}"
            path = check.output / f"gpu-{what}.json"
            if not check.gcbench(what, "run", "--workload", workload, *FASTEST, *more):
                continue
            metrics = json.loads(path.read_text())["trial"]["metrics"]
            path.unlink()
            found.append(
                {
                    "workload": workload,
                    "aim_request_throughput": aim,
                    "flags": [*FASTEST, *more],
                    "metrics": metrics,
                }
            )
            result = {"machine": describe(), "workloads": found}
            (check.output / "gpu-aims.json").write_bytes(indented(result))
            reached = metrics["request_throughput"]
            share = metrics.get("achieved_serial_share")
            print(
                f"{what}: {reached:.1f} req/s, aim {aim:.0f}, "
                f"{'reached' if reached >= aim else 'NOT reached'}"
                + ("" if share is None else f"; {percent(share)} of its serial limit"),
                flush=True,
            )


def verdict(check: Check) -> None:
    """#26368's second test, seven rounds."""
    check.gcbench("verdict", "compare", *VERDICT)


def long(check: Check) -> None:
    """Its first test, five rounds of seven."""
    check.gcbench("long", "compare", *LONG_DEFAULT, "1-5/7")


def long_rest(check: Check) -> None:
    """The other two."""
    check.gcbench("long_rest", "compare", *LONG_DEFAULT, "6-7/7")


def long_freeze(check: Check) -> None:
    """Its first test without the collector's passes."""
    check.gcbench("long_freeze", "compare", *LONG_FREEZE)


def grid(check: Check) -> None:
    """Does asynchronous scheduling make the collector's cost vanish?"""
    check.gcbench("grid", "compare", *GRID)


def churn(check: Check) -> None:
    """Do graphs beside prompts pay?"""
    check.gcbench("churn", "compare", *CHURN)


def calibrate(check: Check) -> None:
    """A profile of this GPU; then the GPU and what is modelled by it, side by side."""
    profile = check.file("opt-125m.toml")
    flags = [*POINTS, *(SMALL_POINTS if check.rehearses else [])]
    to = ["--output", profile, "--json", check.file("calibrate.json")]
    if check.python("calibrate", "-m", "benchmarks.calibrate", "--device", "cuda", *flags, *to):
        check.gcbench(
            "modelled",
            "compare",
            *COMPARED,
            "--axis",
            f"device-profile={profile}",
            "--gc",
            "freeze",
            "--representation",
            "list_of_lists",
            "--delivery",
            "per_request",
            "--rounds",
            "3",
            device="cuda,modelled",
        )


SECONDS = {
    tests: 60.0,
    tiles: 80.0,
    copies: 40.0,
    kernels: 60.0,
    launch: 60.0,
    aims: 140.0,
    verdict: 350.0,
    long: 560.0,
    long_rest: 260.0,
    long_freeze: 300.0,
    calibrate: 150.0,
    grid: 400.0,
    churn: 120.0,
}
"""After which a part is stopped, so that those behind it have their time; chosen."""
PARTS = {part.__name__: part for part in SECONDS}


@contextmanager
def clocks(path: Path) -> Iterator[None]:
    """A line each second: what a figure depends on besides the code."""
    asked = (
        "timestamp,name,driver_version,clocks.sm,clocks.mem,clocks_event_reasons.active,"
        "power.draw,temperature.gpu,memory.used"
    )
    if not shutil.which("nvidia-smi"):
        yield
        return
    command = ["nvidia-smi", f"--query-gpu={asked}", "--format=csv", "--loop-ms=1000"]
    with path.open("a") as file, subprocess.Popen(command, stdout=file) as process:
        try:
            yield
        finally:
            process.terminate()


def main() -> int:
    """Run what was asked for; 1 where something failed, 3 where nothing could be run, 130 where it
    was interrupted.
    """
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--output", type=Path, default=ROOT / "results" / "published" / "gpu")
    parser.add_argument("--before", type=Path, metavar="TREE", help="for part launch")
    parser.add_argument("--rehearse", action="store_true")
    parser.add_argument(
        "--seconds", type=float, default=BUDGET_SECONDS, help="after which it ends by itself"
    )
    given = parser.parse_args()
    chosen = given.parts or list(PARTS)
    if unknown := set(chosen) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    import torch

    if not torch.cuda.is_available() and not given.rehearse:
        print("gpu-check: torch finds no CUDA device here; --rehearse does without one")
        return 3
    given.output.mkdir(parents=True, exist_ok=True)
    check = Check(given.output.resolve(), given.rehearse, given.seconds, given.before)
    try:
        with clocks(check.output / "gpu-clocks.csv"):
            for name in chosen:
                check.begin(SECONDS[PARTS[name]])
                PARTS[name](check)
    except KeyboardInterrupt:
        print("gpu-check: interrupted")
        return 130
    for words, what in (("failed", check.failed), ("no time left for", check.missing)):
        if what:
            print(f"gpu-check: {words}: {', '.join(what)}")
    return 1 if check.failed or check.missing else 0


if __name__ == "__main__":
    sys.exit(main())

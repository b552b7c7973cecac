"""What does the probe of `gcbench probe` cost a program, and what does watching cost?

On each Python that is named, with the probe and without it in turn: an empty collection (in one
process, whose callbacks are taken out and put back), a fork whose child collects once, and a start
of the interpreter, which is what each exec of Python is; and what gcbench itself takes while a
program sleeps. Or what it takes while processes come and go, by a seed. Medians over rounds, of
processor time.

    python -m benchmarks.probed_cost python3.11 python3.12 python3.13
    python -m benchmarks.probed_cost --churn 60

The last line of output is one JSON document.
"""

import gc
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

from gcbench.probe import CAPACITY

ROOT = Path(__file__).parents[1]
ROUNDS = 5
PAIRS = 15
PASSES = CAPACITY // 2
READ_SECONDS = 0.15
"""After it the reader has taken all that there is."""
FORKS, EXECS, IDLE_SECONDS = 200, 20, 5.0
PROCESSES_PER_SECOND = 14


def cpu_seconds() -> float:
    """Of this process and of its children that have ended."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def seconds_per_pass() -> float:
    """Processor seconds of one collection of nothing."""
    began = time.process_time()
    for _ in range(PASSES):
        gc.collect(0)
    return (time.process_time() - began) / PASSES


def collection() -> float:
    """Processor seconds that the probe adds to a collection, in a program that has it."""
    probe = gc.callbacks[:]
    gc.disable()
    gc.collect()
    gc.freeze()
    differences = []
    for _ in range(PAIRS if probe else 0):
        gc.callbacks.clear()
        alone = seconds_per_pass()
        gc.callbacks.extend(probe)
        differences.append(seconds_per_pass() - alone)
        time.sleep(READ_SECONDS)
    return statistics.median(differences) if differences else 0.0


def fork() -> float:
    """Processor seconds of a fork whose child collects once."""
    began = cpu_seconds()
    for _ in range(FORKS):
        child(1)
    return (cpu_seconds() - began) / FORKS


def child(collections: int) -> None:
    """Fork, and wait for it."""
    pid = os.fork()
    if not pid:
        for _ in range(collections):
            gc.collect(0)
        os._exit(0)
    os.waitpid(pid, 0)


def start() -> float:
    """Processor seconds of an interpreter that does nothing."""
    began = cpu_seconds()
    for _ in range(EXECS):
        subprocess.run([sys.executable, "-c", ""], check=True)
    return (cpu_seconds() - began) / EXECS


def idle() -> float:
    """Sleep."""
    time.sleep(IDLE_SECONDS)
    return 0.0


def churn(seconds: float) -> float:
    """Processes at a steady rate, every fourth a new interpreter; how many an hour."""
    draw, began, made = random.Random(0), time.monotonic(), 0
    while (due := made / PROCESSES_PER_SECOND) < seconds:
        time.sleep(max(0.0, began + due - time.monotonic()))
        made += 1
        if made % 4:
            child(draw.randrange(50))
        else:
            code = f"import gc\nfor _ in range({draw.randrange(50)}): gc.collect(0)"
            subprocess.run([sys.executable, "-c", code], check=True)
    return made / (time.monotonic() - began) * 3600


PARTS = {each.__name__: each for each in (collection, fork, start, idle)}


def ran(python: str, words: list[str], result: Path | None) -> tuple[float, dict[str, float]]:
    """What a part says of itself, and what gcbench says of its own cost, if it watches."""
    inside = [python, "-m", "benchmarks.probed_cost", "inside", *words]
    watched = [sys.executable, "-m", "harness", "probe", "--quiet", "--json", str(result), "--"]
    said = subprocess.check_output([*(watched if result else []), *inside], cwd=ROOT)
    own = json.loads(result.read_bytes()) if result else {}
    return float(said), own


def measured(python: str, result: Path) -> dict[str, float]:
    """The costs on one Python."""
    found: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        for part in PARTS:
            alone, _ = ran(python, [part], None)
            probed, own = ran(python, [part], result)
            watching = own["own_cpu_seconds"] / own["wall_seconds"]
            found.setdefault(part, []).append(watching if part == "idle" else probed - alone)
            found.setdefault(f"{part} alone", []).append(alone)
    return {part: statistics.median(values) for part, values in found.items()}


def main() -> None:
    """Measure and print."""
    match sys.argv[1:]:
        case ["inside", "churn", seconds]:
            print(churn(float(seconds)))
            return
        case ["inside", part]:
            print(PARTS[part]())
            return
    result = Path(os.environ.get("TMPDIR", "/tmp"), f"probed-cost-{os.getpid()}.json")
    try:
        if sys.argv[1:2] == ["--churn"]:
            per_hour, own = ran(sys.executable, ["churn", *sys.argv[2:3]], result)
            share = own["own_cpu_seconds"] / own["wall_seconds"]
            said = {"per_hour": per_hour, "core": share, "bytes": own["own_peak_bytes"]}
            print(f"{per_hour:,.0f} processes an hour: {share:.2%} of a core")
            print(json.dumps(said))
        else:
            costs = {python: measured(python, result) for python in sys.argv[1:]}
            for python, parts in costs.items():
                shown = (f"{part} {1e6 * cost:.1f} µs" for part, cost in parts.items() if cost)
                print(python, *shown, sep=", ")
            print(json.dumps(costs))
    finally:
        result.unlink(missing_ok=True)


if __name__ == "__main__":
    main()

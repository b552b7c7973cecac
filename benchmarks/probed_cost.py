"""What does the probe of `gcbench probe` cost a program per collection?

An empty collection with the probe's two callbacks and without them in turn, in a program that runs
under it. Times the collections that `gcbench probe` counts, over the time, it is what the probe
takes from a program.

    gcbench probe --quiet -- python -m benchmarks.probed_cost

The last line of output is one JSON document.
"""

import gc
import json
import statistics
import sys
import time

from gcbench.probe import CAPACITY

PAIRS = 31
PASSES = CAPACITY // 2
READ_SECONDS = 0.15
"""After it the reader has taken all that there is."""


def seconds_per_pass() -> float:
    """Seconds of one collection of nothing."""
    began = time.perf_counter()
    for _ in range(PASSES):
        gc.collect(0)
    return (time.perf_counter() - began) / PASSES


def main() -> None:
    """Measure and print."""
    probe = gc.callbacks[:]
    if not probe:
        sys.exit("run it as gcbench probe --quiet -- python -m benchmarks.probed_cost")
    gc.disable()
    gc.collect()
    gc.freeze()
    differences = []
    for _ in range(PAIRS):
        gc.callbacks.clear()
        alone = seconds_per_pass()
        gc.callbacks.extend(probe)
        differences.append(seconds_per_pass() - alone)
        time.sleep(READ_SECONDS)
    nanoseconds = statistics.median(differences) * 1e9
    print(f"the probe adds {nanoseconds:.0f} ns to a collection of {sys.version.split()[0]}")
    print(json.dumps({"ns_per_collection": nanoseconds}))


if __name__ == "__main__":
    main()

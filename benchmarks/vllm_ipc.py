"""What do vLLM's two hops between processes cost by themselves, without a model and a scheduler?

Front end to engine core: a request by ZeroMQ and msgpack, and the outputs of a step back. Executor
to worker: a step by the queue in shared memory, and the tokens back. Each over the release's own
classes, in processes of its own, for steps of several batch sizes, one after the other and 50 a
second, and then in silence: a reader that spins takes CPU where nothing is to be read. Releases
must have been prepared, by ``gcbench releases vllm VERSION --prepare``.

    python -m benchmarks.vllm_ipc 0.13.0 0.20.2 0.33.0

CPU is of the whole process, by what Linux's scheduler has counted. The last line of output is one
JSON document.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from engines.vllm.launch import launch_vllm

_INSIDE = Path(__file__).with_name("vllm_ipc_inside.py")
_HOPS = {"core": "front end and engine core", "worker": "executor and worker"}
_HEAD = (
    "{:>8} {:>6}  {:>8} {:>8}  {:>9} {:>9}  {:>8} {:>8}  {:>10}".format(
        "release", "batch", "bytes", "back", "round", "p99", "CPU", "CPU of", "peer's CPU"
    ),
    "{:>8} {:>6}  {:>8} {:>8}  {:>9} {:>9}  {:>8} {:>8}  {:>10}".format(
        "", "", "", "", "trip µs", "µs", "µs", "peer µs", "at 50/s"
    ),
)


def of_release(release: str) -> list[dict[str, Any]]:
    """A record for each hop and batch size, see `vllm_ipc_inside`."""
    where = launch_vllm("", release)
    environment = {**os.environ, **where.environment, "VLLM_LOGGING_LEVEL": "ERROR"}
    command = [where.interpreter, "-P", str(_INSIDE)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    found: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Ask each release that is named."""
    found = {release: of_release(release) for release in sys.argv[1:]}
    for hop, title in _HOPS.items():
        print(f"{title}\n{_HEAD[0]}\n{_HEAD[1]}")
        for release, records in found.items():
            for each in (record for record in records if record["hop"] == hop):
                busy, paced = each["one_after_the_other"], each["paced"]
                print(
                    f"{release:>8} {each['batch']:>6}  {each['bytes']:>8,} {each['bytes_back']:>8,}"
                    f"  {busy['median_us']:>9,.0f} {busy['p99_us']:>9,.0f}"
                    f"  {busy['cpu_us']:>8,.0f} {busy['peer_cpu_us']:>8,.0f}"
                    f"  {paced['peer_cpu_share']:>10.0%}"
                )
        for release, records in found.items():
            idle = next(each["idle"] for each in records if each["hop"] == hop and "idle" in each)
            print(
                f"{release:>8}  CPU seconds of the peer in silence: {idle['first_second']:.3f} in "
                f"the first second, {idle['later_second']:.3f} per second later"
            )
        print()
    print(json.dumps(found))


if __name__ == "__main__":
    main()

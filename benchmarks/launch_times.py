"""What does launching a step take the host on a GPU, and what did it take before a change?

    python benchmarks/launch_times.py RESULT.json [--before TREE]

µs of 200 launches and of their steps, of this tree and of TREE, another checkout of gcbench. Each
has a process of its own, and they take turns, ten steps each. OPT-125m at batch 1,024, overlapped,
one array read as columns, frozen; in the steps no row changes.
"""

import argparse
import gc
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parents[1]
NUM_REQS, TURN, TURNS, WARM_UP, PROMPT_LEN = 1024, 10, 20, 20, 48
ONE_TREE = "--one-tree"


def serve(tree: str, model: str, num_reqs: int, turns: int) -> None:
    """The steps of a turn for each line of the input: a line of [launch, step] in µs."""
    sys.path.insert(0, tree)
    import numpy as np

    from engines.builtin.engine import Engine
    from engines.protocol import EngineConfig, SamplingParams

    num_output = WARM_UP + TURN * turns + 2
    longest = PROMPT_LEN + num_output
    engine = Engine(
        EngineConfig(
            max_num_seqs=num_reqs,
            max_model_len=longest,
            model=model,
            device="cuda",
            representation="flat_arrays",
            delivery="columnar",
            output_processing="overlapped",
            max_num_batched_tokens=num_reqs * PROMPT_LEN,
            # Two such processes are to fit.
            num_gpu_blocks_override=num_reqs * -(-longest // 16),
        )
    )
    prompt = np.arange(PROMPT_LEN, dtype=np.int32)
    for index in range(num_reqs):
        engine.add_request(index, prompt, SamplingParams(num_output))
    for _ in range(WARM_UP):
        engine.step()
    gc.collect()
    gc.freeze()
    print(sys.modules[Engine.__module__].__file__, flush=True)
    for _ in sys.stdin:
        steps = []
        for _ in range(TURN):
            engine.step()
            began, scheduled, launched, *_, ended = engine.phase_stamps
            steps.append([(launched - scheduled) / 1e3, (ended - began) / 1e3])
        print(json.dumps(steps), flush=True)
    engine.shutdown()


class Server:
    """A process that serves; ``tree``: by whose code, which a rehearsal decides."""

    def __init__(self, name: str, tree: Path, *arguments: str) -> None:
        self.steps: list[list[float]] = []
        self._name = name
        self._process = subprocess.Popen(
            [sys.executable, __file__, ONE_TREE, str(tree.resolve()), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.tree = Path(self._line().strip()).parents[2]

    def take_turn(self) -> None:
        """Ten steps more."""
        _pipe(self._process.stdin).write("\n")
        _pipe(self._process.stdin).flush()
        self.steps += json.loads(self._line())

    def end(self) -> None:
        """Its input ends."""
        self._process.communicate()

    def _line(self) -> str:
        line = _pipe(self._process.stdout).readline()
        if not line:
            raise SystemExit(f"launch_times: {self._name}: status {self._process.wait()}")
        return line


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


def main() -> None:
    """This tree and another, in turns."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("result", type=Path)
    parser.add_argument("--before", type=Path, metavar="TREE")
    parser.add_argument("--small", action="store_true", help="Shows that it runs.")
    given = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    from harness.files import indented
    from harness.machine.describe import code_identity, describe

    sizes = ("opt-tiny", 4, 2) if given.small else ("opt-125m", NUM_REQS, TURNS)
    trees = {"now": ROOT} | ({"before": given.before} if given.before else {})
    servers = {name: Server(name, tree, *map(str, sizes)) for name, tree in trees.items()}
    for _ in range(sizes[-1]):
        for server in servers.values():
            server.take_turn()
    found: dict[str, Any] = {}
    for name, server in servers.items():
        server.end()
        launches, steps = zip(*server.steps, strict=True)
        commit = code_identity(server.tree)[1]
        found[name] = {"code_commit": commit, "launch_us": launches, "step_us": steps}
        print(
            f"{name}: {statistics.median(launches):.0f} µs a launch, "
            f"{statistics.median(steps):.0f} a step; medians of {len(steps)}"
        )
    given.result.write_bytes(indented({"machine": describe(), "trees": found}))


if __name__ == "__main__":
    if sys.argv[1:2] == [ONE_TREE]:
        serve(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
    else:
        main()

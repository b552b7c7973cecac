"""What does a token cost in each stage of vLLM's front end, from the lean cell to the API server?

Three set-ups of each release, without a model: `LLMEngine` in one process (``--setup lean``),
`AsyncLLM` with its detokenizer and the engine core in a process of its own (``--setup shipped``),
and the same behind vLLM's API server under ``gcbench load``. CPU time and bytecodes by stage and
process, per request and step, and collections by process. Releases must have been prepared, by
``gcbench releases vllm VERSION --prepare``.

    python -m benchmarks.vllm_front_end 0.13.0 0.20.2 0.33.0
    python -m benchmarks.vllm_front_end 0.33.0 --bytecodes      # no times, for a busy machine

The device is the null device, and behind the API server a modelled one that leaves its processes
time: streams that are late get several tokens in one chunk. Times need a quiet machine. The API
server of 0.33.0 wants a package that the environment lacks:

    pip install --target /tmp/orjson orjson
    PYTHONPATH=/tmp/orjson python -m benchmarks.vllm_front_end 0.33.0

The last line of output is one JSON document.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from engines.protocol import EngineConfig
from engines.vllm import stages
from engines.vllm.api_server import ApiServer
from engines.vllm.host_path import HostPathEngine
from engines.vocabulary import read_vocabulary
from harness.axes import Cell
from harness.experiment.local_executor import LocalExecutor
from harness.trial.in_each_process import close_process_window, open_process_window
from harness.trial.spec import Mode, Trial, TrialResult
from harness.trial.stage_meters import ALL, Bytecodes, CpuTime
from harness.trial.step_costs import StageCosts, StageRow
from workloads.schedule import Schedule

BATCH, PROMPT, OUTPUT = 64, 48, 100
ROUNDS = 3
"""Of times; medians are shown."""
PROFILE = "llama-3-8b-h100"
ROOT = Path(__file__).parents[1]
TIMEOUT_SECONDS = 280
SETUPS = {
    "lean": {},
    "async": {
        "setup": "shipped",
        "engine_core": "process",
        "front_end": "async",
        "detokenizer": "decode_stream",
    },
}
_ALONE = {"lean": (), "async": ("engine",), "api": ("frontend", "engine")}
"""Processes in which only vLLM runs; in the others our client does, too."""
NOT_VLLM = ("device", ALL)
"""Our worker, and the process in which our client is."""


def schedule() -> Schedule:
    """As many requests as a batch has, all at once."""
    return Schedule(
        name="front-end",
        prompt_lens=np.full(BATCH, PROMPT),
        output_lens=np.full(BATCH, OUTPUT),
        arrival_seconds=np.zeros(BATCH),
        max_concurrency=0,
        num_accepted=np.array([1]),
        token_seed=0,
        stop_token_ids=(),
        retain="step",
    )


def trials(release: str, setups: Sequence[str], mode: Mode, folder: Path) -> list[TrialResult]:
    """Each set-up in a fresh interpreter, side by side."""
    of = schedule()
    path = folder / "schedule.npz"
    of.save(path)
    asked = [
        Trial(
            cell=cell(release, setup), schedule_path=str(path), schedule_sha256=of.sha256, mode=mode
        )
        for setup in setups
    ]
    results = []
    for outcome in LocalExecutor(TIMEOUT_SECONDS).run(asked):
        if not isinstance(outcome, TrialResult):
            sys.exit(f"{release}: {outcome.reason}")
        results.append(outcome)
    return results


def cell(release: str, setup: str) -> Cell:
    """A set-up's."""
    return Cell(
        workload="front-end",
        engine="vllm-hostpath",
        release=release,
        model="opt-125m",
        device="null",
        representation="native",
        batch_size=BATCH,
        gc="as_is",
        **SETUPS[setup],
    )


@contextmanager
def api_server(release: str, folder: Path) -> Iterator[ApiServer]:
    """A release's, warm."""
    vocabulary = read_vocabulary("")
    config = EngineConfig(
        max_num_seqs=BATCH,
        max_model_len=PROMPT + OUTPUT,
        device="modelled",
        device_profile=PROFILE,
        representation="",
        setup="shipped",
        engine_core="process",
        detokenizer="decode_stream",
        log_stats=True,
        vocab_size=vocabulary.size,
        eos_token_id=vocabulary.eos_token_id,
    )
    server = ApiServer(HostPathEngine.complete(config), release, folder / "said")
    try:
        load(server, BATCH, OUTPUT, folder)
        yield server
    finally:
        server.shutdown()


def load(server: ApiServer, count: int, tokens: int, folder: Path) -> dict[str, Any]:
    """So many requests at once, of so many tokens each; what `gcbench load` found."""
    found = folder / "load.json"
    subprocess.run(
        [
            sys.executable,
            "-P",
            "-m",
            "harness",
            "load",
            server.url,
            "--quiet",
            "--num-requests",
            str(count),
            "--axis",
            "arrivals=at_once",
            "--prompt-lens",
            str(PROMPT),
            "--output-lens",
            str(tokens),
            "--vocab-size",
            "8000",
            "--json",
            str(found),
            "--output",
            str(folder / "runs"),
        ],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        check=False,
    )
    result: dict[str, Any] = json.loads(found.read_bytes())
    if result["outcomes"] != {"completed": count}:
        sys.exit(f"not all requests were answered: {result['outcomes']}")
    return result


def behind_api(
    server: ApiServer, meter: type, count: int, tokens: int, folder: Path
) -> tuple[StageCosts, dict[str, list[int]], dict[str, Any]]:
    """Stages and collections of a run under load, and what the load generator says."""
    refused = server.collective_rpc(open_process_window, "as_is", BATCH, False, None)
    assert not any(refused), refused
    server.collective_rpc(stages.begin, meter)
    found = load(server, count, tokens, folder)
    costs = [StageRow(*cost) for each in server.collective_rpc(stages.end) for cost in each]
    windows = server.collective_rpc(close_process_window)
    counted = "cpu_ns" if meter is CpuTime else "bytecodes"
    return (
        StageCosts(counted=counted, num_rows=count * tokens, costs=costs),
        {each.role: list(each.collections) for each in windows},
        found,
    )


def rows_of(costs: StageCosts, setup: str) -> dict[str, float]:
    """By "process stage", in µs or bytecodes per request and step; what no stage has is "rest"."""
    scale = 1e3 if costs.counted == "cpu_ns" else 1.0
    rows = {key: amount / scale for key, amount in costs.per_row().items()}
    for role in _ALONE[setup]:
        if (role, ALL) not in rows:
            continue
        whole = rows[role, ALL]
        known = sum(amount for (of, stage), amount in rows.items() if of == role and stage != ALL)
        rows[role, "rest"] = whole - known
    return {f"{role} {stage}": amount for (role, stage), amount in rows.items()}


def of_release(release: str, *, times: bool, folder: Path) -> dict[str, Any]:
    """Everything about a release, by set-up."""
    found: dict[str, Any] = {setup: {} for setup in (*SETUPS, "api")}
    for setup, result in zip(
        SETUPS, trials(release, [*SETUPS], "stage_bytecodes", folder), strict=True
    ):
        assert result.stages is not None
        found[setup]["bytecodes"] = [rows_of(result.stages, setup)]
    for setup, result in zip(SETUPS, trials(release, [*SETUPS], "counts", folder), strict=True):
        found[setup]["collections"] = {
            each.role: list(each.collections) for each in result.processes
        }
    for setup in [*SETUPS] * ROUNDS if times else []:
        (result,) = trials(release, [setup], "stages", folder)
        assert result.stages is not None
        found[setup].setdefault("cpu_ns", []).append(rows_of(result.stages, setup))
    with api_server(release, folder) as server:
        _, found["api"]["collections"], _ = behind_api(server, CpuTime, BATCH, OUTPUT, folder)
        # One request: traced, a server with more is slow, and a chunk brings several tokens.
        costs, _, _ = behind_api(server, Bytecodes, 1, OUTPUT, folder)
        found["api"]["bytecodes"] = [
            {f"{role} {stage} per chunk": amount / calls}
            for role, stage, calls, amount in costs.costs
            if stage == "sse"
        ]
        for _ in range(ROUNDS if times else 0):
            costs, _, said = behind_api(server, CpuTime, BATCH, OUTPUT, folder)
            found["api"].setdefault("cpu_ns", []).append(rows_of(costs, "api"))
            found["api"].setdefault("broken_rules", []).append(said["broken"])
    for each in found.values():
        for counted in {"bytecodes", "cpu_ns"} & each.keys():
            each[counted] = medians(each[counted])
    return found


def medians(rounds: list[dict[str, float]]) -> dict[str, float]:
    """Of each row."""
    return {name: median(each.get(name, 0.0) for each in rounds) for name in rounds[0]}


def of_vllm(rows: dict[str, float]) -> float:
    """The sum over the stages that are vLLM's."""
    return sum(amount for name, amount in rows.items() if name.split(" ", 1)[1] not in NOT_VLLM)


def show(found: dict[str, dict[str, Any]]) -> None:
    """A table for each set-up and unit, a column for each release; then shares and collections."""
    for setup in (*SETUPS, "api"):
        for counted, unit in (("bytecodes", "bytecodes"), ("cpu_ns", "CPU µs")):
            columns = {
                release: each[setup][counted]
                for release, each in found.items()
                if counted in each[setup]
            }
            if not columns:
                continue
            print(f"\n{setup}: {unit} per request and step")
            print("{:<30}".format(""), *(f"{release:>10}" for release in columns))
            names = {name: None for rows in columns.values() for name in rows}
            for name in names:
                print(f"{name:<30}", *(f"{rows.get(name, 0):>10.2f}" for rows in columns.values()))
            print(
                "{:<30}".format("vLLM's, together"),
                *(f"{of_vllm(rows):>10.2f}" for rows in columns.values()),
            )
    for release, each in found.items():
        for setup in (*SETUPS, "api"):
            by_role = each[setup]["collections"].items()
            words = ", ".join(f"{role} {'/'.join(map(str, counts))}" for role, counts in by_role)
            print(f"{release} {setup}: collections {words}")
        for at, broken in enumerate(each["api"].get("broken_rules", ()), start=1):
            if broken:
                print(f"{release}: load of round {at}: {broken[0]['sentence']}")
        if "cpu_ns" in each["api"]:
            times = {setup: of_vllm(each[setup]["cpu_ns"]) for setup in each}
            print(
                f"{release}: CPU time per request and step {times['api']:.1f} µs behind the API "
                f"server, of which its process {each['api']['cpu_ns']['frontend all']:.1f}; the "
                f"lean cell has {times['lean'] / times['api']:.0%} of it, AsyncLLM with its engine "
                f"core {times['async'] / times['api']:.0%}"
            )


def main() -> None:
    """Ask each release that is named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("releases", nargs="+")
    parser.add_argument("--bytecodes", action="store_true", help="leave the times out")
    options = parser.parse_args()
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for release in options.releases:
            found[release] = of_release(release, times=not options.bytecodes, folder=Path(folder))
    show(found)
    print(json.dumps(found))


if __name__ == "__main__":
    main()

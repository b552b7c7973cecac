"""Loads against each other: a round is a run, and what differs within one run decides nothing."""

import math
from pathlib import Path

import msgspec
import numpy as np
import pytest
from examples import attempts
from small import answer

from harness.axes import Cell
from harness.cli.main import main
from harness.experiment.diff import diff
from harness.experiment.load_rounds import one_side
from harness.experiment.request_slices import slices
from harness.experiment.result import ExperimentResult, MetricSamples
from harness.experiment.store import RunStore, load_experiment, trial_key
from harness.files import write_json
from harness.load.result import LoadResult
from harness.load.task import Asked
from harness.result.result import RESULT_FILE
from harness.statistics.paired_ratio import ALPHA
from harness.trial.spec import Trial

MAIN_JOB = Path(__file__).parents[3] / "results" / "published" / "main-job.json"
TOKENS = 20
SECOND = 1_000_000_000


def requests(seed, *, slower=1.0, num_requests=400, failed=()):
    """Of an open loop at 50 a second; latencies vary by a third from request to request, and some
    are ten times as long.
    """
    random = np.random.default_rng(seed)
    sent = np.arange(1, num_requests + 1) / 50
    ttft, tpot = (
        slower
        * scale
        * random.lognormal(0, 0.3, num_requests)
        * np.where(random.random(num_requests) < 0.01, 10, 1)
        for scale in (0.03, 0.004)
    )
    reason = np.zeros(num_requests, np.int8)
    reason[list(failed)] = -1
    first = sent + ttft
    columns = {"sent_ns": sent, "first_ns": first, "last_ns": first + (TOKENS - 1) * tpot}
    return {name: (each * SECOND).astype(np.int64) for name, each in columns.items()} | {
        "num_tokens": np.full(num_requests, TOKENS),
        "finish_reason": reason,
    }


def stored(root, name, rows) -> ExperimentResult:
    """A load's folder with these requests, and its summary."""
    store = RunStore(root, name)
    store.create()
    key = trial_key(1, 0, Cell(workload="w"), "timing")
    np.savez(store.rows_path(key), **{f"requests.{name}": each for name, each in rows.items()})
    store.keep_rows(key)
    like = load_experiment(MAIN_JOB)
    metrics = {
        name: MetricSamples(unit="", direction="lower", kind="timing", median=mean, samples=[mean])
        for name, values in slices(rows).items()
        for mean in [float(np.nanmean(values))]
    }
    cell = msgspec.structs.replace(like.cells[0], samples=1, metrics=metrics)
    result = msgspec.structs.replace(
        like, name=name, cells=[cell], workloads=like.workloads[:1], comparisons=[]
    )
    kept = LoadResult(
        name=name,
        trial=answer(Trial(cell=Cell(workload="w"), schedule_path="", schedule_sha256=""), {}),
        asked=Asked(urls=[], model=""),
        num_requests=0,
        num_attempted=0,
        num_completed=0,
        outcomes={},
        messages={},
        broken=[],
        clients=[],
        num_pieces=0,
        prompt_tokens=0,
        server_collections={},
        scrapes=[],
        experiment=result,
    )
    write_json(store.folder / RESULT_FILE, kept)
    return result


def side(root, seeds, *, of_this_start=0.0, **how) -> ExperimentResult:
    """Loads of a server whose starts differ by ``of_this_start`` (relative standard deviation)."""
    starts = np.random.default_rng([*seeds, 7]).lognormal(0, of_this_start, len(seeds))
    slower = how.pop("slower", 1.0)
    loads = [
        stored(root, f"{seed}", requests(seed, slower=slower * start, **how))
        for seed, start in zip(seeds, starts, strict=True)
    ]
    return one_side(loads, [root / load.name for load in loads])


def verdicts(base, head):
    return {each.metric: each.verdict for each in diff(base, head, 0.02).comparisons}


def test_equal_servers_are_not_called_different_however_their_starts_differ(tmp_path):
    count = attempts(20)
    wrong = 0
    for seed in range(0, 14 * count, 14):
        base = side(tmp_path, range(seed, seed + 7), of_this_start=0.05, num_requests=80)
        head = side(tmp_path, range(seed + 7, seed + 14), of_this_start=0.05, num_requests=80)
        wrong += not {"better", "worse"}.isdisjoint(verdicts(base, head).values())
    expected = ALPHA * count
    assert wrong <= expected + 3 * math.sqrt(expected)


def test_what_is_slower_is_worse_and_what_the_schedule_decides_is_not(tmp_path):
    base = side(tmp_path, range(7))
    head = side(tmp_path, range(7, 14), slower=1.3)
    found = verdicts(base, head)
    assert found.pop("request_throughput") in ("same", "inconclusive")
    assert found == {"ttft_mean": "worse", "tpot_mean": "worse"}
    assert set(verdicts(base, base).values()) == {"same"}


def test_one_run_of_each_side_decides_nothing_however_much_they_differ(tmp_path):
    found = diff(side(tmp_path, [1]), side(tmp_path, [2], slower=3), 0.02).comparisons
    assert {each.verdict for each in found} == {"inconclusive"}
    assert {each.rounds for each in found} == {1}
    assert found[1].ratio == pytest.approx(3, rel=0.2), "though it is said"


def test_what_are_no_repeats_are_not_joined(tmp_path):
    loads = [stored(tmp_path, name, requests(1)) for name in "ab"]
    folders = [tmp_path / name for name in "ab"]
    (workload,) = loads[0].workloads
    other = msgspec.structs.replace(workload, hash="f" * 64)
    loads[1] = msgspec.structs.replace(loads[1], workloads=[other])
    with pytest.raises(ValueError, match=r"a and b are no repeats of one load.*: workload; join"):
        one_side(loads, folders)


def test_a_slice_is_the_mean_of_its_completed_requests():
    rows = requests(3, num_requests=198, failed=[0, *range(11, 22)])
    found = slices(rows)
    assert len(found["ttft_mean"]) == 18
    ttft = (rows["first_ns"] - rows["sent_ns"]) / SECOND
    assert found["ttft_mean"][0] == pytest.approx(ttft[1:11].mean())
    assert found["ttft_mean"][-1] == pytest.approx(ttft[-11:].mean())
    assert found["request_throughput"][3:] == pytest.approx(np.full(15, 50), rel=0.2)


@pytest.mark.parametrize("num_requests", [0, 69])
def test_too_few_requests_are_a_sentence(num_requests):
    with pytest.raises(ValueError, match=f"{num_requests} requests completed.* needs 70"):
        slices(requests(4, num_requests=num_requests))


def test_the_command_reads_loads_by_their_folders(tmp_path, capsys):
    for seed in range(14):
        stored(tmp_path, f"{seed}", requests(seed, slower=1 + 0.3 * (seed % 2)))
    base, head = (",".join(map(str, range(first, 14, 2))) for first in (0, 1))
    words = ["--output", str(tmp_path), "--fail-on", "worse"]
    assert main(["report", head, "--against", base, *words]) == 1
    said = capsys.readouterr().out
    assert said.startswith("▼ 2 worse, 1 inconclusive: 1 to 13 against 0 to 12")
    assert "TTFT mean, lower is better" in said
    assert main(["report", "1", "--against", "0", *words]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith("? 3 inconclusive: 1 against 0")
    assert "measure 7 or more of each in turn" in said
    assert "detects changes" not in said
    assert main(["report", "1,3", "--against", "0,2", *words]) == 2
    assert (
        "2 rounds of request_throughput on both sides, an interval needs 3"
        in capsys.readouterr().err
    )
    assert main(["report", "1", "--against", f"0,{MAIN_JOB}", *words]) == 2
    assert "is no load: only loads are joined" in capsys.readouterr().err


def test_a_run_that_was_invalid_is_named(tmp_path):
    result = stored(tmp_path, "a", requests(1))
    with pytest.raises(ValueError, match="a has no valid run"):
        one_side([msgspec.structs.replace(result, cells=[])], [tmp_path / "a"])

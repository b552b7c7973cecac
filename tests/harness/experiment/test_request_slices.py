"""Two runs under load by slices of their requests: equal ones are never called different."""

import math
from pathlib import Path

import msgspec
import numpy as np
import pytest
from examples import attempts

from harness.axes import Cell
from harness.cli.load_store import LOAD_FILE
from harness.cli.main import main
from harness.experiment.diff import diff
from harness.experiment.request_slices import slices, with_slices
from harness.experiment.result import ExperimentResult
from harness.experiment.store import RunStore, load_experiment, trial_key
from harness.statistics.paired_ratio import ALPHA

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
        slower * scale * random.lognormal(0, 0.3, num_requests)
        * np.where(random.random(num_requests) < 0.01, 10, 1)
        for scale in (0.03, 0.004)
    )  # fmt: skip
    reason = np.zeros(num_requests, np.int8)
    reason[list(failed)] = -1
    first = sent + ttft
    columns = {"sent_ns": sent, "first_ns": first, "last_ns": first + (TOKENS - 1) * tpot}
    return {name: (each * SECOND).astype(np.int64) for name, each in columns.items()} | {
        "num_tokens": np.full(num_requests, TOKENS), "finish_reason": reason,
    }  # fmt: skip


def stored(root, name, rows) -> ExperimentResult:
    """A load's folder with these requests, and its summary."""
    store = RunStore(root, name)
    store.create()
    key = trial_key(1, 0, Cell(workload="w"), "timing")
    np.savez(store.rows_path(key), **{f"requests.{name}": each for name, each in rows.items()})
    store.keep_rows(key)
    like = load_experiment(MAIN_JOB)
    result = msgspec.structs.replace(like, name=name, cells=like.cells[:1], comparisons=[])
    store.save_experiment(result)
    (store.folder / LOAD_FILE).write_text("{}")
    return with_slices(result, store.folder)


def verdicts(base, head):
    return {each.metric: each.verdict for each in diff(base, head, 0.02).comparisons}


def test_equal_servers_are_not_called_different(tmp_path):
    count = attempts(100)
    wrong = 0
    for seed in range(count):
        base = stored(tmp_path, f"{seed}-a", requests(2 * seed))
        head = stored(tmp_path, f"{seed}-b", requests(2 * seed + 1))
        wrong += not {"better", "worse"}.isdisjoint(verdicts(base, head).values())
    expected = ALPHA * count
    assert wrong <= expected + 3 * math.sqrt(expected)


def test_what_is_slower_is_worse_and_what_the_schedule_decides_is_not(tmp_path):
    base = stored(tmp_path, "a", requests(1))
    head = stored(tmp_path, "b", requests(2, slower=1.3))
    found = verdicts(base, head)
    assert found.pop("request_throughput") in ("same", "inconclusive")
    assert found == {"ttft_mean": "worse", "tpot_mean": "worse"}
    assert set(verdicts(base, base).values()) == {"same"}


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
    stored(tmp_path, "a", requests(1))
    stored(tmp_path, "b", requests(2, slower=1.3))
    assert main(["diff", "a", "b", "--output", str(tmp_path), "--fail-on", "worse"]) == 1
    said = capsys.readouterr().out
    assert said.startswith("▼ 2 worse, 1 inconclusive: b against a")
    assert "TTFT mean, lower is better" in said


def test_a_run_that_was_invalid_is_named(tmp_path):
    result = stored(tmp_path, "a", requests(1))
    with pytest.raises(ValueError, match="a has no valid run"):
        with_slices(msgspec.structs.replace(result, cells=[]), tmp_path / "a")

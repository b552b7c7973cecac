"""Under exact conditions a trial repeats to the digit, in forks and in fresh interpreters."""

from pathlib import Path

import msgspec
import numpy as np
import pytest
from examples import every, some
from small import TRIAL_SECONDS, schedule, trial

from harness.axes import Cell
from harness.experiment.local_executor import LocalExecutor
from harness.trial.message_parts import PARTS
from harness.trial.spec import Mode, TrialFailure, TrialResult
from workloads.schedule import Schedule

BATCH = 1024
DECODE = schedule([40] * BATCH)
LISTS = Cell(workload="small", device="null", representation="list_of_lists", batch_size=BATCH)
COLUMNS = msgspec.structs.replace(LISTS, representation="flat_arrays", delivery="columnar")
COUNTING: tuple[Mode, ...] = ("counts", "tracked", "opcodes")
ALL_COUNTING: tuple[Mode, ...] = (*COUNTING, "memory", "leaks")
NOT_COUNTS = {"full_pass_per_object"}


def run(
    folder: Path, asked: list[tuple[Cell, Mode, int]], of: Schedule = DECODE
) -> list[TrialResult]:
    """Four get ready together; those that can share an engine are forks of one interpreter."""
    trials = [
        trial(
            of,
            folder,
            cell,
            mode=mode,
            seed=seed,
            max_steps=12 * (mode == "opcodes"),
            rows_path=str(folder / "rows.npz") if mode == "timing" else "",
        )
        for cell, mode, seed in asked
    ]
    executor = LocalExecutor(TRIAL_SECONDS)
    outcomes = [each for i in range(0, len(trials), 4) for each in executor.run(trials[i : i + 4])]
    for outcome in outcomes:
        assert not isinstance(outcome, TrialFailure), outcome.reason
        assert outcome.invalid == ""
    return [outcome for outcome in outcomes if isinstance(outcome, TrialResult)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("exact")


@pytest.fixture(scope="module")
def results(folder) -> dict[tuple[Cell, str], list[TrialResult]]:
    """A few trials that the quick tests share."""
    asked: list[tuple[Cell, Mode, int]] = [(LISTS, mode, 0) for mode in COUNTING for _ in "12"]
    asked += [(COLUMNS, "counts", 0), (LISTS, "probed", 0), (LISTS, "timing", 5)]
    found: dict[tuple[Cell, str], list[TrialResult]] = {}
    for (cell, mode, _), result in zip(asked, run(folder, asked), strict=True):
        found.setdefault((cell, mode), []).append(result)
    return found


@pytest.fixture(scope="module")
def together(folder) -> dict[tuple[Cell, Mode], tuple]:
    """What forks of one interpreter count, or of two."""
    asked = [(cell, mode, 0) for cell in (LISTS, COLUMNS) for mode in ALL_COUNTING]
    results = map(repeatable, run(folder, asked))
    return {(cell, mode): each for (cell, mode, _), each in zip(asked, results, strict=True)}


@pytest.mark.slow
def test_looking_at_what_collections_find_moves_none_of_them(folder):
    """How old the rest of the heap is decides what a collection walks over, not when it runs."""
    modes: tuple[Mode, ...] = ("sites", "counts")
    trials = [trial(DECODE, folder, LISTS, mode=mode, max_steps=8) for mode in modes]
    looked_at, counted = LocalExecutor(TRIAL_SECONDS).run(trials)
    assert isinstance(looked_at, TrialResult)
    assert isinstance(counted, TrialResult)
    assert sum(looked_at.processes[0].collections) == sum(counted.processes[0].collections)
    assert looked_at.sites.collections == looked_at.processes[0].collections
    assert sum(looked_at.sites.collections) > 10


def repeatable(result: TrialResult) -> tuple:
    metrics = {name: v for name, v in result.metrics.items() if name not in NOT_COUNTS}
    collected = [(p.role, p.collections, p.collected, p.state) for p in result.processes]
    return metrics, result.tokens_sha256, result.finish_sha256, collected


def collections(result: TrialResult) -> int:
    return sum(sum(process.collections) for process in result.processes)


@pytest.mark.slow
@pytest.mark.parametrize("mode", COUNTING)
def test_counts_repeat_to_the_digit(results, mode):
    first, *others = map(repeatable, results[LISTS, mode])
    assert others
    assert others == [first] * len(others)


@pytest.mark.slow
def test_what_a_request_costs_is_counted_beside_the_steps(results):
    counted = results[LISTS, "opcodes"][0].metrics
    for what in ("bytecodes", "allocations"):
        assert all(counted[f"{what}_per_{call}"] > 0 for call in ("add", "finish", "abort"))


@pytest.mark.slow
def test_counts_repeat_in_interpreters_of_their_own(folder, together):
    for cell, mode in some(list(together)):
        alone = [run(folder, [(cell, mode, 0)])[0] for _ in range(max(1, 4 // every()))]
        assert [repeatable(each) for each in alone] == [together[cell, mode]] * len(alone), mode


@pytest.mark.slow
def test_bytes_across_a_worker_s_wire_repeat(folder):
    cell = msgspec.structs.replace(LISTS, worker="process", wire="full")
    results = run(folder, [(cell, "wire", 0)] * 2, schedule([16] * BATCH))
    assert len({result.metrics["wire_bytes_per_step"] for result in results}) == 1
    crossing = ("scheduler_output", "model_runner_output")
    first, second = (
        {name: value for name, value in result.metrics.items() if name.startswith(crossing)}
        for result in results
    )
    assert second == first
    assert len(first) == 20
    for direction in crossing:
        parts = (first[f"{direction}_bytes_{part}"] for part in PARTS)
        assert sum(parts) == first[f"{direction}_bytes_per_step"]
    assert [each.direction for each in results[0].messages] == list(crossing)
    assert (
        0 < first["scheduler_output_edit_distance"] < first["scheduler_output_bytes_per_step"] / 4
    )
    assert first["scheduler_output_bytes_last"] > first["scheduler_output_bytes_first"]


@pytest.mark.slow
def test_lists_make_the_collector_run_and_columns_do_not(results):
    lists, columns = results[LISTS, "counts"][0], results[COLUMNS, "counts"][0]
    assert lists.metrics["gc_collections_gen0"] > 40
    assert collections(lists) >= 10 * max(1, collections(columns))
    assert lists.tokens_sha256 == columns.tokens_sha256
    assert lists.finish_sha256 == columns.finish_sha256


@pytest.mark.slow
def test_the_probe_moves_the_counts_by_one_at_most(results):
    unseen, seen = results[LISTS, "counts"][0], results[LISTS, "probed"][0]
    pairs = zip(unseen.processes[0].collections, seen.processes[0].collections, strict=True)
    assert all(abs(a - b) <= 1 for a, b in pairs)


@pytest.mark.slow
def test_the_probe_saw_every_collection_of_a_timing(results, folder):
    (timed,) = results[LISTS, "timing"]
    (process,) = timed.processes
    with np.load(folder / "rows.npz") as columns:
        recorded = np.bincount(columns["collections.generation"], minlength=3)
        pauses = columns["collections.duration_ns"].sum() / 1e9
    assert recorded.tolist() == list(process.collections)
    assert process.probe_dropped == 0
    assert timed.metrics["gc_pause_total"] == pytest.approx(pauses)
    assert sum(process.pause_seconds) == pytest.approx(pauses)
    assert timed.tokens_sha256 == results[LISTS, "counts"][0].tokens_sha256

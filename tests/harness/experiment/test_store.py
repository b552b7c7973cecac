"""Results on disk: whole or not at all, resumable, and nothing lost that cannot be read."""

import json
import os
import re
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.axes import Cell
from harness.experiment.result import ExperimentResult
from harness.experiment.store import (
    RunStore,
    StoreError,
    load_experiment,
    new_name,
    read_rows,
    trial_key,
    write_json,
    write_rows,
)
from harness.files import write_whole
from harness.machine.describe import Machine
from harness.result.result import RESULT_FILE, ReplayedWorkload, keep_result
from harness.trial.spec import TrialFailure, TrialResult

CELL = Cell(workload="opt125m-48-200")


def result(cell: Cell = CELL, seed: int = 0, **metrics: float | None) -> TrialResult:
    return TrialResult(
        cell=cell,
        mode="timing",
        seed=seed,
        metrics=metrics,
        processes=[],
        tokens_sha256="",
        finish_sha256="",
        interpreter="",
        code_root="",
        code_commit="",
        wall_seconds=1.0,
    )


def failure(cell: Cell = CELL) -> TrialFailure:
    return TrialFailure(cell=cell, mode="timing", seed=0, kind="crashed", reason="it fell over")


@pytest.fixture
def store(tmp_path) -> RunStore:
    store = RunStore(tmp_path / "runs", "one")
    store.create()
    return store


def test_trials_come_back_as_they_went(store):
    other = msgspec.structs.replace(CELL, gc="freeze")
    outcomes = {
        trial_key(0, 0, CELL, "timing"): result(tpot_median=0.01, tpot_p99=None),
        trial_key(0, 1, other, "timing"): failure(other),
        trial_key(1000, 0, CELL, "timing"): result(seed=1000),
    }
    for key, outcome in outcomes.items():
        store.save_trial(key, outcome)
    again = RunStore(store.folder.parent, "one")
    assert again.load_trials() == outcomes
    assert again.warnings == []


def test_a_result_from_before_an_axis_was_there_is_still_read(store):
    """Its cell has no such field, and the name of its file knows nothing of it."""
    key = trial_key(0, 0, CELL, "timing")
    store.save_trial(key, result())
    path = store.folder / "trials" / f"{key}.json"
    stored = json.loads(path.read_text())
    del stored["result"]["cell"]["engine_core"], stored["result"]["steady_state"]
    path.write_text(json.dumps(stored))
    assert store.load_trials() == {key: result()}
    assert store.warnings == []


def test_a_retried_trial_replaces_its_failure(store):
    key = trial_key(0, 0, CELL, "timing")
    store.save_trial(key, failure())
    store.save_trial(key, result())
    assert store.load_trials() == {key: result()}


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_metric_keeps_every_digit(tmp_path_factory, value):
    store = RunStore(tmp_path_factory.getbasetemp(), "digits")
    store.create()
    key = trial_key(0, 0, CELL, "timing")
    store.save_trial(key, result(tpot_median=value))
    loaded = store.load_trials()[key]
    assert isinstance(loaded, TrialResult)
    assert loaded.metrics["tpot_median"] == value


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda text: text[: len(text) // 2], "cannot be read"),
        (lambda text: b"", "cannot be read"),
        (lambda text: b"\xff" + text, "cannot be read"),
        (lambda text: text.replace(b"stored-trial/2", b"stored-trial/9"), "stored-trial/9"),
        (lambda text: text.replace(b"trial-result/1", b"trial-result/9"), "trial-result/9"),
        (lambda text: text.replace(b"per_request", b"columnar"), "another trial"),
        (lambda text: text.replace(b'"seed":0', b'"seed":"0"'), "cannot be read"),
    ],
)
def test_what_cannot_be_read_is_set_aside_and_never_overwritten(store, damage, says):
    good, bad = (trial_key(number, 0, CELL, "timing") for number in range(2))
    store.save_trial(good, result())
    damaged = []
    for _ in range(2):
        store.save_trial(bad, result())
        path = store.folder / "trials" / f"{bad}.json"
        path.write_bytes(damage(path.read_bytes()))
        damaged.append(path.read_bytes())
        assert store.load_trials() == {good: result()}
        assert not path.exists()
    aside = sorted((store.folder / "trials").glob("*.unreadable*"))
    assert [path.read_bytes() for path in aside] == damaged
    assert len(store.warnings) == 2
    assert all(
        says in warning and path.name in warning
        for warning, path in zip(store.warnings, aside, strict=True)
    )


def test_a_writer_that_is_killed_leaves_the_old_file_or_the_new_one(tmp_path):
    path = tmp_path / "value.json"
    script = (
        "import sys, pathlib; from harness.files import write_whole\n"
        "path = pathlib.Path(sys.argv[1])\n"
        "for letter in b'abcdefgh' * 10_000:\n"
        "    write_whole(path, bytes([letter]) * 1_000_000)\n"
        "    print(flush=True)\n"
    )
    for _ in range(3):
        writer = subprocess.Popen(
            [sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, cwd=Path.cwd()
        )
        with writer:
            assert writer.stdout is not None
            for _ in range(5):
                writer.stdout.readline()
            writer.kill()
        content = path.read_bytes()
        assert len(content) == 1_000_000
        assert len(set(content)) == 1


def test_a_failed_write_leaves_nothing_behind(store, tmp_path, no_file_above):
    path = tmp_path / "value.json"
    write_whole(path, b"old")
    with no_file_above(2), pytest.raises(StoreError, match=r"File too large.*--output DIR"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert not list(tmp_path.glob(".*.tmp"))


def test_files_get_the_usual_permissions(tmp_path):
    (tmp_path / "usual").touch()
    write_whole(tmp_path / "written", b"")
    assert (tmp_path / "written").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"file/one: Not a directory; .*--output DIR") as caught:
        RunStore(tmp_path / "file", "one").create()
    assert "\n" not in str(caught.value)
    with pytest.raises(StoreError, match="--output DIR"):
        new_name(tmp_path / "file", "label")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../x", "-x", "a b"])
def test_names_that_leave_the_folder_are_refused(tmp_path, name):
    with pytest.raises(ValueError, match="cannot name an experiment"):
        RunStore(tmp_path, name)


def test_a_plan_is_resumed_only_by_itself(store):
    plan = {"cells": [CELL], "rounds": 7, "seed": 0}
    assert store.adopt_plan(plan) is False
    assert store.adopt_plan(dict(reversed(plan.items()))) is True
    for other in ({**plan, "rounds": 6}, {**plan, "rounds": 8, "seed": 1}, {"rounds": 8}):
        with pytest.raises(StoreError, match="another plan"):
            store.adopt_plan(other)
    assert store.load_plan(dict) == msgspec.to_builtins(plan)
    (store.folder / "plan.json").write_bytes(b"{")
    with pytest.raises(StoreError, match=r"cannot be read: .*; begin a new experiment"):
        store.adopt_plan(plan)
    assert (store.folder / "plan.json").read_bytes() == b"{"


def test_a_plan_with_more_rounds_takes_the_place_of_its_own(store):
    plan = {"cells": [CELL], "rounds": 3, "seed": 0}
    store.adopt_plan(plan)
    assert store.adopt_plan({**plan, "rounds": 7}) is True
    with pytest.raises(StoreError, match="another plan"):
        store.adopt_plan(plan)
    assert store.load_plan(dict) == msgspec.to_builtins({**plan, "rounds": 7})


HOLDS = """
import sys
from pathlib import Path
from harness.experiment.store import RunStore
with RunStore(Path(sys.argv[1]), "one").writer():
    print("held", flush=True)
    sys.stdin.readline()
"""


def test_a_second_writer_is_told_who_the_first_is_and_finds_the_folder_free_afterwards(store):
    unfinished = store.folder / "rows" / ".x.npz.1-abc.tmp"
    command = [sys.executable, "-c", HOLDS, str(store.folder.parent)]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as first:
        assert first.stdout.readline() == "held\n"
        unfinished.touch()
        said = rf"is being written by process {first.pid} since .*; let it end"
        with pytest.raises(StoreError, match=said), store.writer():
            pass
        assert unfinished.exists(), "it is the first one's"
        first.kill()
    with store.writer():
        assert not unfinished.exists()


@pytest.mark.parametrize("damage", ["cut", "empty", "noise", "flipped"])
def test_damaged_rows_are_set_aside_and_end_nothing(store, damage):
    key = trial_key(1, 0, CELL, "timing")
    path = store.rows_path(key)
    np.savez(path, **{"steps.host_ns": np.arange(1000)})
    content = bytearray(path.read_bytes())
    if damage == "flipped":
        content[400] ^= 255
    damaged = {"cut": content[:-20], "empty": b"", "noise": b"\x93NUMPY"}.get(damage, content)
    path.write_bytes(damaged)
    store.keep_rows(key)
    (warning,) = store.warnings
    assert re.fullmatch(rf"rows of {key} cannot be read: .*; set aside as .*\.unreadable", warning)
    assert [each.name for each in path.parent.iterdir()] == [f"{path.name}.unreadable"]


def test_names_tell_when_and_what_and_are_never_given_twice(tmp_path):
    now = datetime(2026, 11, 21, 3, 14)
    names = [new_name(tmp_path, "opt125m 48/200", now) for _ in range(3)]
    assert names == [f"2026-11-21T0314-opt125m-48-200{end}" for end in ("", "-2", "-3")]
    for name in names:
        RunStore(tmp_path, name).create()


def test_an_experiment_comes_back_from_its_folder(store, tmp_path):
    experiment = ExperimentResult(
        name="one",
        machine=Machine(cores_usable=2),
        workloads=[ReplayedWorkload(name="w", hash="h")],
        decide=["request_throughput"],
        tolerance=0.02,
        cells=[],
        comparisons=[],
        failures=[failure()],
        notes=[],
        command="",
        code_commits=[],
    )
    keep_result(store.folder.parent, experiment)
    path = store.folder / RESULT_FILE
    assert load_experiment(path) == load_experiment(store.folder) == experiment
    write_json(tmp_path / "x.json", experiment)
    assert (tmp_path / "x.json").read_bytes() == path.read_bytes()
    path.write_bytes(path.read_bytes().replace(b"result/1", b"result/0"))
    with pytest.raises(StoreError, match=r"gcbench.result/0.*this gcbench reads"):
        load_experiment(path)
    with pytest.raises(StoreError, match="there is no"):
        load_experiment(tmp_path)


def test_json_goes_to_standard_output_files_and_pipes(capsys, tmp_path):
    write_json("-", {"µ": [1, None]})
    assert json.loads(capsys.readouterr().out) == {"µ": [1, None]}
    target, link = tmp_path / "target.json", tmp_path / "link.json"
    target.touch()
    link.symlink_to(target)
    write_json(link, {"a": 1})
    assert link.is_symlink()
    assert json.loads(target.read_text()) == {"a": 1}
    reader, writer = os.pipe()
    with open(reader) as received:  # noqa: PTH123
        write_json(f"/proc/self/fd/{writer}", {"b": 2})
        os.close(writer)
        assert json.loads(received.read()) == {"b": 2}
    with pytest.raises(StoreError, match="--json FILE"):
        write_json(tmp_path, {})


def test_rows_keep_dtypes_and_values(tmp_path):
    columns = {
        "step": np.arange(5, dtype=np.int32),
        "duration_seconds": np.array([0.1, np.nan, 3.0, 4.0, 5.0]),
        "generation": np.array([0, 1, 2, 0, 0], dtype=np.int8),
        "column_of_a_matrix": np.arange(15, dtype=np.int64).reshape(5, 3)[:, 1],
    }
    path = tmp_path / "rows" / "x-steps.parquet"
    write_rows(path, columns)
    back = read_rows(path)
    assert list(back) == list(columns)
    for name, column in columns.items():
        assert back[name].dtype == column.dtype
        np.testing.assert_array_equal(back[name], column)
    write_rows(path, {"step": np.empty(0, dtype=np.int64)})
    assert len(read_rows(path)["step"]) == 0


def test_rows_that_make_no_table_are_refused(tmp_path):
    path = tmp_path / "x.parquet"
    with pytest.raises(ValueError, match="equally long"):
        write_rows(path, {"a": np.zeros(3), "b": np.zeros(4)})
    with pytest.raises(ValueError, match="1-D"):
        write_rows(path, {"a": np.zeros((3, 2))})
    assert not path.exists()
    path.write_bytes(b"PAR1")
    with pytest.raises(StoreError, match="cannot be read"):
        read_rows(path)

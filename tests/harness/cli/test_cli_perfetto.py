"""`gcbench run --perfetto` from the outside: a trace of a real trial, or a sentence before it."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from perfetto_reader import read_back, top_level

from engines.vllm.releases import VLLM
from harness.cli.main import main
from harness.experiment.executor import Executor
from harness.experiment.local_executor import LocalExecutor
from harness.experiment.run_result import RunResult
from harness.trial.spec import Trial, TrialResult

HERE = Path(__file__).parent
TINY = [
    "--device",
    "null",
    "--num-requests",
    "12",
    "--output-lens",
    "40",
    "--batch-size",
    "8",
    "--gc",
    "threshold:50",
]


class Kept(NamedTuple):
    """A trial as it was asked for, what it answered and the rows that it left."""

    asked: Trial
    outcome: TrialResult
    rows: bytes


class Recording(Executor):
    """Runs trials on this machine, or answers as a kept one did; keeps what came of them."""

    def __init__(self, again: Kept | None = None) -> None:
        self.kept: list[Kept] = []
        self._again = again

    def __call__(self, timeout_seconds: float) -> "Recording":
        self._local = LocalExecutor(timeout_seconds)
        return self

    def run(self, trials: Sequence[Trial]) -> Iterator[TrialResult]:
        if self._again:
            for trial in trials:
                Path(trial.rows_path).write_bytes(self._again.rows)
        outcomes = [self._again.outcome] if self._again else self._local.run(trials)
        for trial, outcome in zip(trials, outcomes, strict=True):
            assert isinstance(outcome, TrialResult), outcome
            self.kept.append(Kept(trial, outcome, Path(trial.rows_path).read_bytes()))
            yield outcome


def run_and_trace(folder: Path, *arguments: str) -> tuple[Kept, bytes]:
    """A real trial, as it was said in JSON too, and its trace."""
    recording, path, said = Recording(), folder / "trial.pftrace", folder / "result.json"
    words = ["run", *TINY, "--quiet", "--output", str(folder / "runs"), *arguments]
    assert main([*words, "--perfetto", str(path), "--json", str(said)], recording) == 0
    (kept,) = recording.kept
    assert msgspec.json.decode(said.read_bytes(), type=RunResult).trial == kept.outcome
    return kept, path.read_bytes()


@pytest.fixture(scope="module")
def traced(tmp_path_factory) -> tuple[Kept, bytes]:
    """A trial of `TINY` and nothing else."""
    return run_and_trace(tmp_path_factory.mktemp("traced"))


@pytest.fixture
def run(tmp_path, capsys):
    """Call the command; its status and what it said of errors."""

    def call(*arguments: str, executors=LocalExecutor) -> tuple[int, str]:
        words = ["run", *TINY, "--quiet", "--output", str(tmp_path / "runs"), *arguments]
        return main(words, executors), capsys.readouterr().err

    return call


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "num_processes"),
    [
        ([], 1),
        (["--output-processing", "process", "--worker", "process"], 3),
        (["--max-steps", "5"], 1),
        pytest.param(
            ["--engine", "vllm-hostpath", "--release", VLLM.PINNED, "--worker", "process"],
            2,
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_trace_has_as_many_steps_requests_and_collections_as_the_result(
    tmp_path, capsys, request, arguments, num_processes
):
    if VLLM.PINNED in arguments:
        request.getfixturevalue("pinned_vllm")
    if arguments:
        (_, result, _), trace = run_and_trace(tmp_path, *arguments)
        assert capsys.readouterr().err == ""
    else:
        (_, result, _), trace = request.getfixturevalue("traced")
    slices = read_back(trace)
    assert len(top_level(slices, "steps")) == result.metrics["num_steps"]
    requests = top_level(slices, "requests")
    assert sum("finish_reason" in each.facts for each in requests) == (
        0 if "--max-steps" in arguments else 12
    )
    assert len(result.processes) == num_processes
    found = Counter(each.track for each in slices if each.track[0].startswith("collections in "))
    assert found == +Counter(
        {
            (f"collections in {process.role}", f"generation {generation}"): count
            for process in result.processes
            for generation, count in enumerate(process.collections)
        }
    )
    assert found["collections in engine", "generation 0"] > 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--perfetto", "FOLDER"], "--perfetto FOLDER: cannot be written; name a file in a folder"),
        (
            ["--perfetto", "/nowhere/t"],
            "--perfetto /nowhere/t: cannot be written; name a file in a folder",
        ),
        (["--perfetto", "-"], "--perfetto -: a trace is not text; name a file"),
        (
            ["--perfetto", "t", "--mode", "counts"],
            "--perfetto and --mode counts: only a timing "
            "trial says when things happened; leave one of the two out",
        ),
        (
            ["--perfetto", "t", "--mode", "opcodes"],
            "--perfetto and --mode opcodes: only a timing "
            "trial says when things happened; leave one of the two out",
        ),
    ],
)
def test_what_cannot_be_a_trace_is_refused_before_anything_runs(run, tmp_path, arguments, words):
    folder = str(tmp_path)
    given = [folder if each == "FOLDER" else each for each in arguments]
    assert run(*given) == (2, f"gcbench: {words.replace('FOLDER', folder)}\n")
    assert not (tmp_path / "runs").exists()


def test_a_missing_package_is_named_before_anything_runs(run, tmp_path, monkeypatch):
    ours = ["harness.report.perfetto", "harness.render.trace_file", "harness.report.load_trace"]
    for name in [name for name in sys.modules if name.split(".")[0] == "perfetto" or name in ours]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [_Lacks(), *sys.meta_path])
    assert run("--perfetto", str(tmp_path / "t")) == (
        2,
        f"gcbench: {sys.executable} has no perfetto, which --perfetto needs; run {sys.executable} "
        "-m pip install 'gcbench[bench]'\n",
    )
    assert not (tmp_path / "runs").exists()


class _Lacks:
    """An importer by which there is no perfetto."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "perfetto":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@pytest.mark.slow
def test_a_full_disk_is_a_sentence_and_the_trial_is_kept(run, traced, tmp_path):
    status, err = run("--perfetto", "/dev/full", executors=Recording(traced[0]))
    assert (status, err) == (
        2,
        "gcbench: results cannot be written to /dev/full: No space left on device; name another "
        "place with --perfetto FILE\n",
    )
    assert len(list(tmp_path.glob("runs/*/trials/*.json"))) == 1


@pytest.mark.slow
def test_a_trial_is_asked_for_the_same_with_a_trace_and_without(run, traced):
    recording = Recording(traced[0])
    assert run(executors=recording) == (0, "")
    asked = [traced[0].asked, recording.kept[0].asked]
    places = [Path(each.rows_path).parents[1] for each in asked]
    with_trace, without = (
        msgspec.json.encode(each).replace(str(place).encode(), b"FOLDER")
        for each, place in zip(asked, places, strict=True)
    )
    assert places[0] != places[1]
    assert with_trace == without


_LOADED = """
import json, sys
from harness.cli.main import main
found = []
for words in json.loads(sys.argv[1]):
    status = main(words)
    found.append([status, sorted({name.split(".")[0] for name in sys.modules})])
print(json.dumps(found))
"""


@pytest.mark.slow
def test_a_trace_loads_perfetto_and_neither_torch_nor_vllm(fresh_interpreter, tmp_path):
    words = ["run", *TINY, "--quiet", "--output", str(tmp_path / "runs")]
    trace = ["--perfetto", str(tmp_path / "trial.pftrace")]
    without, with_trace = fresh_interpreter(_LOADED, json.dumps([words, [*words, *trace]]))
    for status, loaded in (without, with_trace):
        assert status == 0
        assert not {"torch", "vllm"} & set(loaded)
    assert "perfetto" in with_trace[1]
    assert "perfetto" not in without[1]


def interrupted(moment: int, folder: Path) -> tuple[int, int]:
    """A run that gets Ctrl-C at one of its operations; its status, and how many there were."""
    folder.mkdir()
    found = [str(HERE.parent), os.environ["PYTHONPATH"]]
    trace = ["--perfetto", str(folder / "trial.pftrace")]
    done = subprocess.run(
        [
            sys.executable,
            str(HERE / "interrupted_command.py"),
            str(moment),
            "run",
            *TINY,
            "--quiet",
            *trace,
            "--output",
            str(folder),
        ],
        cwd=HERE.parents[2],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(found), "PYTHONFAULTHANDLER": "1"},
    )
    assert done.returncode in (0, 130), done.stderr
    assert "Traceback" not in done.stderr
    return done.returncode, int(folder.with_name(f"{folder.name}.operations").read_text())


@pytest.mark.slow
def test_ctrl_c_while_the_trace_is_written_leaves_none_or_all_of_it(tmp_path):
    status, operations = interrupted(-1, tmp_path / "whole")
    assert status == 0
    whole = ["trial.pftrace"]
    # The last three: a temporary file is opened, renamed, and removed if it is still there.
    for moment, left in zip(range(operations - 3, operations), ([], [], whole), strict=True):
        folder = tmp_path / str(moment)
        assert interrupted(moment, folder)[0] == 130
        assert [path.name for path in folder.iterdir() if path.is_file()] == left
        (stored,) = folder.glob("*/trials/*.json")
        assert json.loads(stored.read_bytes())["result"]

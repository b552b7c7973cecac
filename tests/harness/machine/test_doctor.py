"""What the doctor sees, with the trouble made for real wherever it can be."""

import gc
import subprocess
import sys
import tomllib
import tracemalloc
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from harness.machine.describe import cores_usable
from harness.machine.doctor import check_machine, interpreter, surroundings
from harness.machine.interpreter import VERSIONS
from harness.machine.other_work import BUSY_SHARE

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def findings(tmp_path_factory):
    return {finding.what: finding for finding in check_machine(tmp_path_factory.mktemp("results"))}


@pytest.mark.slow
def test_every_complaint_comes_with_advice(findings):
    assert len(findings) == 14
    for finding in findings.values():
        assert finding.detail
        assert (finding.level == "ok") == (finding.advice == "")


@pytest.mark.slow
def test_this_environment_can_measure(findings):
    assert [findings[what].level for what in ("Python", "torch", "results")] == ["ok"] * 3


@pytest.mark.parametrize(
    ("version", "level"),
    [
        ((3, 10, 9), "bad"),
        ((3, 11, 0), "ok"),
        ((3, 12, 1), "ok"),
        ((3, 13, 0), "ok"),
        ((3, 14, 4), "ok"),
        ((3, 14, 5), "ok"),
        ((3, 15, 0), "bad"),
    ],
)
def test_python_versions(version, level):
    assert interpreter.python(version).level == level


def test_the_two_collectors_of_one_version_are_told_apart():
    incremental, generational = (interpreter.python((3, 14, n)).detail for n in (4, 5))
    assert incremental.startswith("3.14.4: incremental")
    assert generational.startswith("3.14.5: generational")


@pytest.mark.parametrize(
    ("version", "level"),
    [
        ("2.10.1", "bad"),
        ("2.11.0", "ok"),
        ("2.13.0+cpu", "ok"),
        ("2.14.1", "ok"),
        ("2.15.0a0+git", "bad"),
        ("3.0.0", "bad"),
    ],
)
def test_torch_versions(version, level):
    assert interpreter.torch_version(version).level == level


def test_supported_versions_are_those_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = [".".join(map(str, version)) for version in VERSIONS]
    assert project["requires-python"] == f">={names[0]},<3.{max(VERSIONS)[1] + 1}"
    language = "Programming Language :: Python :: "
    listed = [each.removeprefix(language) for each in project["classifiers"]]
    assert [each for each in listed if each.startswith("3.")] == names
    assert f"Python {', '.join(names[:-1])} or {names[-1]}" in (ROOT / "README.md").read_text()
    (_, low), (_, high) = interpreter.TORCH_VERSIONS
    assert f"torch>=2.{low},<2.{high + 1}" in project["optional-dependencies"]["torch"]


def test_the_young_threshold_of_this_version_is_the_one_that_is_told():
    assert interpreter.default_thresholds()[0] == VERSIONS[sys.version_info[:2]].young_threshold


def test_an_interpreter_without_torch(tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError('libnothing.so: no such file')")
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nPYTHONPATH="{tmp_path}" exec "{sys.executable}" "$@"\n')
    bare.chmod(0o755)
    finding = interpreter.torch(str(bare))
    assert (finding.level, finding.detail) == ("bad", "ImportError: libnothing.so: no such file")
    assert interpreter.torch(str(tmp_path / "missing")).level == "bad"
    (tmp_path / "torch.py").unlink()
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['torch'] = None")
    assert interpreter.torch(str(bare)).level == "bad", "it is there and cannot be imported"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n')
    assert (found := interpreter.torch(str(bare))).level == "ok"
    assert found.detail.startswith("not installed")


def test_telling_variables():
    assert interpreter.environment({"PYTHONUNBUFFERED": "1", "PYTHONHASHSEED": ""}).level == "ok"
    finding = interpreter.environment({"PYTHONHASHSEED": "1", "PYTHONDEVMODE": "1"})
    assert finding.level == "warn"
    assert finding.advice == "unset PYTHONHASHSEED PYTHONDEVMODE"


@pytest.mark.parametrize(
    ("trouble", "says"),
    [
        ("gc.disable()", "automatic collection is off"),
        ("gc.set_threshold(9999)", "thresholds are (9999, "),
        ("gc.freeze()", "objects are frozen"),
        ("gc.callbacks.append(print)", "1 callbacks"),
    ],
)
def test_a_collector_that_something_has_set(trouble, says):
    script = (
        f"import gc; from harness.machine.doctor.interpreter import collector as c\n{trouble}\n"
    )
    script += "finding = c()\ngc.callbacks.clear()\nprint(finding.level, finding.detail)"
    answer = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert answer.stdout.startswith("warn")
    assert says in answer.stdout


def test_default_thresholds_are_not_those_of_this_process():
    before = gc.get_threshold()
    try:
        gc.set_threshold(4321)
        assert interpreter.default_thresholds()[0] != 4321
    finally:
        gc.set_threshold(*before)


def test_a_tracer_is_seen():
    tracemalloc.start()
    try:
        assert "tracemalloc" in interpreter.tracing().detail
    finally:
        tracemalloc.stop()
    before = sys.getprofile()
    sys.setprofile(lambda *_: None)
    try:
        assert interpreter.tracing().level == "bad"
    finally:
        sys.setprofile(before)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["/usr/bin/python3", "-P", "-m", "harness", "trial"], True),
        (["/x/.venv/bin/python", "/x/.venv/bin/gcbench", "compare"], True),
        (["/x/.venv/bin/python", "-m", "gcbench", "compare"], True),
        (["python3.12", "-m", "harness_of_someone", "trial"], False),
        (["vim", "gcbench"], False),
        (["python", "train.py", "--out", "gcbench"], False),
        ([], False),
    ],
)
def test_which_commands_are_gcbench(command, expected):
    assert surroundings.is_gcbench(command) is expected


def test_another_trial_is_seen_by_its_process():
    script = ["-c", "import sys; print(flush=True); sys.stdin.read()", "-m", "harness", "trial"]
    with subprocess.Popen(
        [sys.executable, *script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        finding = surroundings.other_trials()
        other.communicate()
    assert finding.level == "bad"
    assert str(other.pid) in finding.detail


def test_programs_that_never_rest_are_seen_as_other_work():
    enough = int(BUSY_SHARE * cores_usable()) + 2
    with ExitStack() as stack:
        for _ in range(enough):
            other = stack.enter_context(subprocess.Popen([sys.executable, "-c", "while True: 0"]))
            stack.callback(other.kill)
        finding = surroundings.other_work()
    assert finding.level == "warn"
    assert "--wait" in finding.advice


def test_a_wait_never_ends_early():
    late = surroundings.oversleep_seconds(20)
    assert late.dtype == np.float64
    assert (late >= 0).all()


def test_a_results_folder_that_cannot_be_written(tmp_path):
    assert surroundings.results_folder(tmp_path / "new" / "deep").level == "ok"
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    finding = surroundings.results_folder(tmp_path / "file")
    assert finding.level == "bad"
    assert "--output DIR" in finding.advice

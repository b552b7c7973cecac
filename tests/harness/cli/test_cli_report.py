"""gcbench report: stored runs, read again and set against each other."""

import json
import os
import shutil
from pathlib import Path

import msgspec
import pytest
from gate_results import LISTS, cell, exact, result

from harness.cli.main import main
from harness.experiment.diff import diff
from harness.experiment.noise_result import NoiseResult
from harness.experiment.result import ExperimentResult
from harness.experiment.store import load_experiment, write_json

PUBLISHED = Path(__file__).parents[3] / "results" / "published"
MAIN_JOB = PUBLISHED / "main-job.json"


@pytest.fixture
def runs(tmp_path) -> Path:
    """A folder of two experiments and a gate, each newer than the one before."""
    folder = tmp_path / "runs"
    for place, (name, file) in enumerate({"old": "main-job.json", "new": "columns.json"}.items()):
        (folder / name).mkdir(parents=True)
        target = folder / name / "result.json"
        shutil.copy(PUBLISHED / file, target)
        os.utime(target, (1_000 + place, 1_000 + place))
    (folder / "unfinished").mkdir()
    return folder


def shown(capsys, *words: str) -> tuple[int, str, str]:
    status = main([*words])
    said = capsys.readouterr()
    return status, said.out, said.err


def test_a_run_is_found_by_name_by_folder_by_file_and_as_the_latest(runs, capsys):
    folder = ["--output", str(runs)]
    for words in (["old", *folder], [str(runs / "old")], [str(MAIN_JOB)]):
        status, out, _ = shown(capsys, "report", *words)
        assert status == 0
        assert out.startswith("▲ Best: flat_arrays · columnar")
    latest = shown(capsys, "report", "latest", *folder)[1]
    new = shown(capsys, "report", "new", *folder)[1]
    assert latest.replace("latest", "new").split() == new.split()
    write_json(runs / "unfinished" / "result.json", result([cell(LISTS, "worse", exact())]))
    assert shown(capsys, "report", "latest", *folder)[1].startswith("▼ WORSE, by exact")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("olt", "there is no run 'olt'; did you mean old"),
        ("lates", "there is no run 'lates'; did you mean latest"),
        (str(PUBLISHED / "main-jobb.json"), f"did you mean {PUBLISHED / 'main-job.json'}"),
        ("unfinished", "unfinished holds no result: it was ended"),
        (str(PUBLISHED / "README.md"), "README.md cannot be read"),
    ],
)
def test_what_is_no_run_is_named(runs, capsys, name, words):
    status, out, err = shown(capsys, "report", name, "--output", str(runs))
    assert (status, out) == (2, "")
    assert words in err


def test_an_empty_folder_has_no_latest(tmp_path, capsys):
    status, _, err = shown(capsys, "report", "latest", "--output", str(tmp_path))
    assert status == 2
    assert "holds no finished run" in err


def test_files_are_written_and_nothing_is_printed(capsys, tmp_path):
    paths = {kind: tmp_path / f"report.{kind}" for kind in ("html", "png", "md")}
    status, out, _ = shown(
        capsys,
        "report",
        str(MAIN_JOB),
        "--html",
        str(paths["html"]),
        "--image",
        str(paths["png"]),
        "--export",
        f"markdown={paths['md']}",
    )
    assert (status, out) == (0, "")
    assert paths["html"].read_text().startswith("<!doctype html>")
    assert paths["png"].read_bytes().startswith(b"\x89PNG")
    assert paths["md"].read_text().startswith("### gcbench compare: ▲ Best: flat")


def test_details_show_every_table(capsys):
    out = shown(capsys, "report", str(MAIN_JOB), "--details")[1]
    for title in ("Cells, on a modelled device", "without full passes", "Left out", "command"):
        assert title in out
    assert max(map(len, (line.rstrip() for line in out.splitlines()))) <= 80


def test_a_noise_floor_is_printed_and_has_a_page_and_no_picture(tmp_path, capsys):
    path = tmp_path / "noise.json"
    write_json(
        path,
        NoiseResult(
            name="noise",
            metric="host_time_per_step",
            cells=2,
            rounds=14,
            trial_cv=0.02,
            sd_log_ratio=0.018,
            mde={7: 0.031, 14: 0.0152, 28: 0.009},
        ),
    )
    status, out, _ = shown(capsys, "report", str(path))
    assert status == 0
    assert out.startswith("14 rounds on this machine detect changes of host time per step from ±1")
    page, picture = tmp_path / "x.html", tmp_path / "x.svg"
    assert shown(capsys, "report", str(path), "--html", str(page))[0] == 0
    assert "14 rounds on this machine detect" in page.read_text()
    status, _, err = shown(capsys, "report", str(path), "--image", str(picture))
    assert (status, picture.exists()) == (2, False)
    assert "there is nothing to draw in" in err


def changed(of: ExperimentResult, factor: float, **other) -> ExperimentResult:
    """The same with every sample of what decides times a factor."""
    cells = []
    for each in of.cells:
        name = of.decide[0]
        found = each.metrics[name]
        samples = [sample and sample * factor for sample in found.samples]
        metrics = each.metrics | {name: msgspec.structs.replace(found, samples=samples)}
        cells.append(msgspec.structs.replace(each, metrics=metrics))
    return msgspec.structs.replace(of, cells=cells, **other)


def test_a_run_against_itself_is_the_same_and_against_a_slower_one_worse():
    of = load_experiment(MAIN_JOB)
    assert {each.verdict for each in diff(of, of, 0.02).comparisons} == {"same"}
    slower = diff(of, changed(of, 0.9), 0.02)
    assert {each.verdict for each in slower.comparisons} == {"worse"}
    assert {round(each.ratio, 6) for each in slower.comparisons} == {0.9}
    assert len(slower.comparisons) == len(of.cells)


def test_other_machines_and_interpreters_are_refused():
    of = load_experiment(MAIN_JOB)
    machine = msgspec.structs.replace(of.machine, cpu_model="another")
    with pytest.raises(ValueError, match="cpu model"):
        diff(of, msgspec.structs.replace(of, machine=machine), 0.02)
    cells = [msgspec.structs.replace(cell, interpreter="CPython 3.12.1 (a)") for cell in of.cells]
    with pytest.raises(ValueError, match="interpreter"):
        diff(of, msgspec.structs.replace(of, cells=cells), 0.02)


def test_cells_that_do_other_work_are_left_out_and_named():
    of = load_experiment(MAIN_JOB)
    first, second, *rest = of.cells
    other = msgspec.structs.replace(first, tokens_sha256=["ff" * 32])
    found = diff(of, msgspec.structs.replace(of, cells=[other, *rest]), 0.02)
    assert len(found.comparisons) == len(rest)
    said = " ".join(found.not_compared)
    assert f"{first.id}: the tokens are others" in said
    assert f"{second.id}: {of.name} has no such cell." in said
    workloads = [msgspec.structs.replace(each, hash="0" * 64) for each in of.workloads]
    with pytest.raises(ValueError, match="not the same requests in both"):
        diff(of, msgspec.structs.replace(of, workloads=workloads), 0.02)


def test_the_command_says_what_is_worse_and_exits_as_asked(runs, capsys, tmp_path):
    of = load_experiment(MAIN_JOB)
    write_json(tmp_path / "slow.json", changed(of, 0.9))
    words = ["report", str(tmp_path / "slow.json"), "--against", "old", "--output", str(runs)]
    status, out, _ = shown(capsys, *words)
    assert status == 0
    assert out.startswith("▼ 10 worse")
    assert shown(capsys, *words, "--fail-on", "worse")[0] == 1
    status, out, _ = shown(capsys, *words, "--json", "-")
    assert json.loads(out)["schema"] == "gcbench.result/1"
    for more, said in (
        (["--against", str(tmp_path / "slow.json")], "is the run itself"),
        (["--fail-on", "worse"], "--fail-on: is of two runs"),
    ):
        status, _, err = shown(capsys, *words[:2], *more)
        assert status == 2
        assert said in err
    gate = tmp_path / "gate.json"
    write_json(gate, result())
    status, _, err = shown(capsys, "report", str(MAIN_JOB), "--against", str(gate))
    assert status == 2
    assert "is no experiment" in err

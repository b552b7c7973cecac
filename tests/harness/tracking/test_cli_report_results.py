"""``gcbench report RESULTS``: tables and JSON of real results; else a status and a sentence."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from golden_text import assert_golden

from harness.axes import Cell
from harness.cli.main import main
from harness.experiment.store import RunStore, trial_key
from harness.render import terminal
from harness.trial.spec import TrialFailure

GOLDEN = Path(__file__).parents[2] / "golden"
ASV = str(GOLDEN / "asv")


@pytest.fixture
def gcbench(capfd):
    def call(*arguments: str) -> tuple[int, str, str]:
        status = main(["report", *arguments])
        said = capfd.readouterr()
        return status, said.out, said.err

    return call


@pytest.mark.parametrize(
    ("flags", "name"), [((), "report-results.txt"), (("--details",), "report-results-details.txt")]
)
def test_what_changed_on_a_screen(gcbench, monkeypatch, flags, name):
    monkeypatch.setattr(terminal, "WIDTH", 80)
    monkeypatch.setattr(sys, "argv", ["gcbench", "report", "asv"])
    monkeypatch.chdir(GOLDEN)
    status, out, err = gcbench(
        "asv",
        "--between",
        "1c32",
        "078e",
        "--metric",
        "throughput,gen0,bare,mem_list,endless",
        *flags,
    )
    assert status == 0
    text = "\n".join(line.rstrip() for line in out.splitlines()) + "\n"
    assert max(map(len, text.splitlines())) <= 80
    assert_golden(name, text)
    assert err == ""
    shown = text.count("track_endless is")
    assert (shown, "and 3 more" in text) == ((8, False) if flags else (5, True))


def test_json_holds_every_digit_and_no_nan(gcbench, tmp_path):
    status, out, _ = gcbench(ASV, "--between", "1c32", "078e", "--json", "-")
    assert status == 0

    def refuse(token: str) -> None:
        raise AssertionError(f"{token} is not JSON")

    found = json.loads(out, parse_constant=refuse)
    assert found["schema"] == "gcbench.result/1"
    read = found["read"]
    assert (read["commits"], read["figures"], read["trials"], read["failures"]) == (3, 112, 0, 0)
    assert len(found["problems"]) == 8
    rows = {
        (row["machine"], row["environment"][-4:], row["series"]): row for row in found["changes"]
    }
    assert len(rows) == len(found["changes"]) == 56
    row = rows["box-a", "TOY0", "suite.track_throughput('flat', 1024)"]
    stored = json.loads((GOLDEN / "asv/box-a/078ebfa8-virtualenv-py3.11-TOY0.json").read_text())
    assert row["after"] == stored["results"]["suite.track_throughput"][0][3]
    assert row["parameters"] == {"shape": "flat", "param_value": 1024}
    assert rows["box-b", "TOY0", "suite.track_bare"]["before"] is None
    status, out, err = gcbench(ASV, "--between", "1c32", "078e", "--json", str(tmp_path / "a.json"))
    assert (status, out) == (0, "")
    assert err.count("is inf, which is no figure") == 8
    stored = json.loads((tmp_path / "a.json").read_text())
    assert stored | {"command": ""} == found | {"command": ""}
    _, again, _ = gcbench(str(tmp_path / "a.json"))
    assert "gen0" in again


def test_without_between_each_series_last_two_commits(gcbench):
    status, out, _ = gcbench(ASV, "--json", "-", "--metric", "gen0")
    assert status == 0
    changes = json.loads(out)["changes"]
    assert {(row["machine"], row["base"][:8], row["head"][:8]) for row in changes} == {
        ("box-a", "1c323ccd", "078ebfa8")
    }


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        ("--between 1c32 f", 2, ["no commit 'f'", "078ebfa83b79"]),
        ("--between 1c32 1c32", 2, ["the same commit"]),
        ("--between 1c32", 2, ["--between", "2 arguments"]),
        ("--metric thruput", 2, ["'thruput'", "throughput"]),
        (
            "--metric gen0 --between 1c32 078e --json /no/such/folder/a.json",
            2,
            ["--json", "cannot be written"],
        ),
        ("--metric endless --csv -", 3, ["nothing to compare", "asv run"]),
        (
            "--metric always_fails --between 2d0f 1c32 --json -",
            3,
            ["nothing to compare", "both commits"],
        ),
        ("--between 1c32 078e --against latest", 2, ["--against: is of runs"]),
        ("--metric gen0 --merge", 2, ["--merge: is of runs"]),
        ("latest", 2, ["--merge puts shards together"]),
    ],
)
def test_a_sentence_and_a_status_for_what_cannot_be(gcbench, arguments, status, words):
    found, _, err = gcbench(ASV, *arguments.split())
    assert found == status, err
    assert "Traceback" not in err
    for word in words:
        assert word in err.splitlines()[-1]


def test_nothing_readable_is_a_usage_error(gcbench, tmp_path):
    for place in (tmp_path, tmp_path / "none"):
        status, out, err = gcbench(str(place))
        assert (status, out) == (2, "")
        assert err.startswith("gcbench: ")
        assert err.count("\n") == 1


def test_raw_trials_are_counted_and_not_compared(gcbench, tmp_path):
    store = RunStore(tmp_path / "runs", "one")
    store.create()
    cell = Cell(workload="small", device="modelled", representation="list_of_lists")
    failure = TrialFailure(cell=cell, mode="timing", seed=0, kind="crashed", reason="it fell over")
    store.save_trial(trial_key(0, 0, cell, "timing"), failure)
    status, out, err = gcbench(str(tmp_path))
    assert status == 3
    assert "0 with a result and 1 without, in 1 experiment" in out
    assert "Nothing to compare: these are raw trials" in out
    assert err == ""
    shutil.copytree(ASV, tmp_path / "asv")
    status, out, _ = gcbench(str(tmp_path))
    assert status == 0
    assert "0 with a result and 1 without" in out
    assert "figures" in out


def test_a_table_goes_into_a_pipe_and_in_the_place_of_a_link_that_leads_nowhere(gcbench, tmp_path):
    pipe, loop = tmp_path / "pipe.csv", tmp_path / "loop.csv"
    os.mkfifo(pipe)
    loop.symlink_to(loop)
    reader = os.open(pipe, os.O_RDWR)  # so that who writes need not wait for one
    assert gcbench(ASV, "--csv", str(pipe), "--metric", "bare")[0] == 0
    assert pipe.is_fifo()
    received = os.read(reader, 1 << 16)
    os.close(reader)
    assert gcbench(ASV, "--csv", str(loop), "--metric", "bare")[0] == 0
    assert loop.read_bytes() == received != b""

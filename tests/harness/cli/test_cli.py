"""The command line: one sentence for every mistake, the right exit code, results that decode."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import click
import msgspec
import psutil
import pytest
from click.shell_completion import ShellComplete
from full_output import full_standard_output
from golden_text import assert_golden_screens
from processes import HEARS_CTRL_C, is_alive, until, wait_for
from small import answer

from harness.cli.compare import compare
from harness.cli.main import cli, main
from harness.experiment.executor import Executor
from harness.experiment.experiment_file import load_experiment_file
from harness.experiment.result import ExperimentResult
from harness.experiment.run_result import RunResult
from harness.machine.held import held
from harness.trial.spec import Trial, TrialFailure

ROOT = Path(__file__).parents[3]
TINY = ["--device", "null", "--num-requests", "8", "--output-lens", "12", "--batch-size", "8"]
NOISE = ["doctor", "--noise", "--device", "null"]
COMMANDS = list(cli.list_commands(click.Context(cli)))


@pytest.fixture
def gcbench(tmp_path, capsys):
    """Run a command here, its results in a folder of the test's own."""

    def call(*arguments: str) -> tuple[int, str, str]:
        output = (
            []
            if "--output" in arguments or arguments[0] == "list"
            else ["--output", str(tmp_path / "runs")]
        )
        machine = call.machine
        status = main([*arguments, *output], machine and (lambda _timeout: machine))
        said = capsys.readouterr()
        return status, said.out, said.err

    call.machine = None  # this one
    return call


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["comprae"], ["comprae", "compare"]),
        (["run", "--representation", "list_of_list"], ["'list_of_list'", "list_of_lists"]),
        (["run", "--device", "nul"], ["'nul'", "null"]),
        (["run", "--gc", "frezee"], ["'frezee'", "freeze"]),
        (["run", "--gc", "threshold:0"], ["'0'", "threshold:0"]),
        (["run", "--workload", "chatt"], ["'chatt'", "chat"]),
        (["run", "--engine", "builtn"], ["'builtn'", "builtin"]),
        (["run", "--worker", "proces"], ["'proces'", "process"]),
        (["run", "--wire", "pickel"], ["'pickel'", "pickle"]),
        (["run", "--axis", "device-profile=opt-125m-h20"], ["opt-125m-h20", "opt-125m-h200"]),
        (["run", "--output-processing", "inlined"], ["'inlined'", "inline"]),
        (["run", "--delivery", "columnar"], ["columnar delivery of list_of_lists"]),
        (["run", "--batch-size", "0"], ["--batch-size 0"]),
        (["run", "--batch-size", "many"], ["--batch-size", "whole numbers"]),
        (["run", "--batch-size", ","], ["--batch-size", "no value"]),
        (["run", "--heap-objects", "-1"], ["--heap-objects -1"]),
        (["run", "--gc", "default,freeze"], ["one value an axis"]),
        (["run", "--wire", "columns"], ["--wire columns", "--worker process"]),
        (["run", "--json", "."], ["--json .", "Is a directory"]),
        (["run", "--json", ""], ["--json: an empty value"]),
        (["run", "--output="], ["--output: an empty value"]),
        (
            ["run", "--trial-timeout", "nan"],
            ["--trial-timeout nan: must be above 0 and at most 1,000,000"],
        ),
        (
            ["run", "--trial-timeout", "1e300"],
            ["must be above 0 and at most 1,000,000", "at most 1,000,000"],
        ),
        (["run", "--max-steps", "-1"], ["--max-steps", "-1"]),
        (["compare", "--experiment", ""], ["--experiment: an empty value"]),
        (["compare", "--resume", ""], ["--resume: an empty value"]),
        (["compare", "--budget", "nan"], ["--budget nan: must be at least 0 and at most"]),
        (["compare", "--tolerance", "-1"], ["--tolerance -1: must be at least 0 and at most 99"]),
        (["compare", "--until-precise", "inf"], ["--until-precise inf: must be at least 0"]),
        (["run", "--num-requests", "0"], ["num_requests 0"]),
        (["run", "--output-lens", "normal:3:1"], ["'normal'"]),
        (["run", "--axis", "arrivals=poisson:0"], ["poisson:0", "rate"]),
        (["run", "--seed", "-1"], ["seed -1"]),
        (["run", "--axis", "window=0:10"], ["window", "no trace"]),
        (["run", "--workload", "none.csv"], ["none.csv"]),
        (["run", "--workload", "none.toml"], ["none.toml"]),
        (["compare", "--rounds", "0"], ["--rounds 0"]),
        (["compare", "--decide", "request_througput"], ["request_througput", "request_throughput"]),
        (["compare", "--decide", "num_steps"], ["num_steps"]),
        (["compare", "--decide", "tracked_peak_per_step"], ["tracked_peak_per_step"]),
        (["compare", "--decide", "gc_effect"], ["gc_effect"]),
        (["compare", "--baseline", "freeze"], ["--baseline freeze", "AXIS=VALUE"]),
        (["compare", "--baseline", "gc=on_wait"], ["--baseline gc=on_wait"]),
        (["compare", "--baseline", "colour=red"], ["'colour'"]),
        (["compare", "--fail-on", "better"], ["--fail-on", "worse"]),
        (["compare", "--resume", "../elsewhere"], ["--resume ../elsewhere"]),
        (["compare", "--roundz", "3"], ["--roundz", "--rounds"]),
        (["list", "colours"], ["colours"]),
        (["list", "wirez"], ["did you mean wires"]),
        (["sites", "--rows", "1"], ["no command 'sites' any more", "explain --by collections"]),
        (["attach", "4711"], ["no command 'attach' any more", "gcbench probe"]),
        (["calibrate"], ["no command 'calibrate' any more", "python -m benchmarks.calibrate"]),
        (["reproduce"], ["no command 'reproduce' any more", "python -m benchmarks.claims"]),
    ],
)
def test_a_mistake_is_one_sentence_and_status_two(gcbench, arguments, words):
    status, out, err = gcbench(*arguments)
    assert status == 2
    assert out == ""
    (line,) = err.splitlines()
    assert line.startswith("gcbench: ")
    for word in words:
        assert word in line


TRACE = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n"


def test_a_bad_row_of_a_trace_is_named_by_file_and_line(gcbench, tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text(f"{TRACE}2023-11-16 18:15:50.9951690,many,109\n")
    status, _, err = gcbench("run", "--workload", str(path))
    assert status == 2
    (line,) = err.splitlines()
    assert str(path) in line
    assert re.search(r"(line |row |:)3\b", line)


@pytest.mark.slow
def test_bad_rows_that_are_skipped_are_counted(gcbench, tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text(f"{TRACE}2023-11-16 18:15:50.9951690,many,109\n")
    flags = ["--axis", "skip-bad-rows=on", "--device", "null", "--mode", "counts"]
    status, out, _ = gcbench(
        "run", "--workload", str(path), *flags, "--output", str(tmp_path / "runs")
    )
    assert status == 0
    assert "1 bad row of the trace left out." in out


@pytest.mark.slow
def test_the_doctor_names_what_it_found(gcbench):
    _, out, _ = gcbench("doctor", "--json", "-")
    assert {"level", "what", "detail", "advice"} == set(json.loads(out)["findings"][0])


@pytest.mark.parametrize("window", ["3", "a:b", "1:2:3"])
def test_a_window_that_is_none_is_shown_as_it_should_be(gcbench, tmp_path, window):
    path = tmp_path / "trace.csv"
    path.write_text(TRACE)
    status, _, err = gcbench("run", "--workload", str(path), "--axis", f"window={window}")
    assert (status, err) == (
        2,
        f"gcbench: --axis window={window}: must be START:DURATION in seconds\n",
    )


@pytest.mark.parametrize("folder", ["/proc/nowhere", "FILE/runs"])
def test_a_folder_that_cannot_be_written_to_is_named(gcbench, tmp_path, folder):
    (tmp_path / "FILE").write_text("")
    path = folder.replace("FILE", str(tmp_path / "FILE"))
    for command in ("run", "compare"):
        status, _, err = gcbench(command, *TINY, "--output", path)
        assert status == 2
        (line,) = err.splitlines()
        assert path in line
        assert "--output DIR" in line


def test_help_has_examples_and_fits_the_page(capsys, monkeypatch):
    def pages(width: int) -> str:
        monkeypatch.setenv("COLUMNS", str(width))
        found = []
        for words in [*([command, "--help"] for command in COMMANDS), ["compare", "--help-all"]]:
            assert main(words) == 0
            text = capsys.readouterr().out
            assert re.search(r"Examples:\n\s+gcbench ", text), words
            found.append(f"──── gcbench {' '.join(words)}\n{text}\n")
        text = "".join(found)
        assert [line for line in text.splitlines() if len(line) > width] == []
        return text

    assert_golden_screens("help", pages)


def test_the_help_of_a_comparison_names_the_main_options_and_help_all_every_one(capsys):
    assert main(["compare", "--help"]) == 0
    short = set(re.findall(r"^  (--[a-z-]+)", capsys.readouterr().out, re.MULTILINE))
    assert short - {"--help", "--help-all"} == {
        "--call",
        "--representation",
        "--delivery",
        "--gc",
        "--workload",
        "--num-requests",
        "--prompt-lens",
        "--output-lens",
        "--engine",
        "--device",
        "--batch-size",
        "--rounds",
        "--dry-run",
        "--heap-objects",
        "--output-processing",
        "--release",
        "--worker",
        "--wire",
        "--axis",
        "--counting",
        "--details",
        "--image",
        "--json",
    }
    assert main(["compare", "--help-all"]) == 0
    shown = capsys.readouterr().out
    flags = {flag for param in compare.params for flag in param.opts if flag.startswith("--")}
    assert all(re.search(rf"^  .*{flag}\b", shown, re.MULTILINE) for flag in flags)


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        (["--gc", "fr"], ["freeze"]),
        (["--gc", "default,fr"], ["default,freeze"]),
        (["--representation", "flat"], ["flat_arrays"]),
        (["--batch-size", "1"], []),
    ],
)
def test_a_shell_completes_the_values_of_an_axis(typed, found):
    *words, incomplete = typed
    complete = ShellComplete(cli, {}, "gcbench", "_GCBENCH_COMPLETE")
    items = complete.get_completions(["compare", *words], incomplete)
    assert [item.value for item in items] == found


def test_a_dry_run_counts_trials_and_leaves_nothing(gcbench, tmp_path):
    status, out, _ = gcbench(
        "compare",
        *TINY,
        "--dry-run",
        "--rounds",
        "3",
        "--gc",
        "default,freeze",
        "--representation",
        "list_of_lists",
        "--output",
        str(tmp_path / "runs"),
    )
    assert status == 0
    assert "6 timed in 3 rounds" in out
    assert not (tmp_path / "runs").exists()


def test_a_dry_run_of_a_file_tells_each_part_and_leaves_nothing(gcbench, tmp_path):
    runs = tmp_path / "runs"
    asked = ("--experiment", "padding", "--dry-run", "--rounds", "3", "--output", str(runs))
    status, out, _ = gcbench("compare", *asked)
    parts = load_experiment_file("padding").parts
    assert status == 0
    assert [line for line in out.splitlines() if line in {each.title for each in parts}] == [
        each.title for each in parts
    ]
    assert out.count("12 timed in 3 rounds") == len(parts)
    assert not runs.exists()


def test_the_top_names_every_command(capsys):
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(re.search(rf"^  {command} ", text, re.MULTILINE) for command in COMMANDS)


def test_one_of_a_kind_lists_the_kind(capsys):
    assert main(["list", "wire"]) == 0
    one = capsys.readouterr().out
    assert main(["list", "wires"]) == 0
    assert one == capsys.readouterr().out


class Machine(Executor):
    """Takes the place of this machine: each round the candidate is slower by a share.

    ``broken``: of which collector policies no trial gives a result.
    """

    def __init__(self, slower: float = 0.0, interrupt_at: int = 0, broken: str = "") -> None:
        self.slower, self.interrupt_at, self.broken, self.asked = slower, interrupt_at, broken, 0

    def batch_size(self, cells):
        return 2

    def run(self, trials: list[Trial]):
        for trial in trials:
            self.asked += 1
            if self.asked == self.interrupt_at:
                raise KeyboardInterrupt
            if self.broken and re.search(self.broken, trial.cell.gc):
                fields = {"cell": trial.cell, "mode": trial.mode, "seed": trial.seed}
                yield TrialFailure(**fields, kind="crashed", reason="it fell over")
                continue
            wobble = 1 + (trial.seed + self.asked) % 100 / 1e5
            slow = 1 + self.slower * (trial.cell.gc != "default")
            yield answer(trial, {"host_time_per_step": 1e-3 * slow * wobble})


PAIR = [
    "compare",
    *TINY,
    "--representation",
    "list_of_lists",
    "--gc",
    "default,disabled",
    "--heap-objects",
    "0",
]


@pytest.mark.parametrize(
    ("slower", "more", "status"),
    [(0.2, ["--fail-on", "worse"], 1), (0.2, [], 0), (-0.2, ["--fail-on", "worse"], 0)],
)
def test_a_cell_that_is_worse_fails_where_asked(gcbench, monkeypatch, slower, more, status):
    gcbench.machine = Machine(slower)
    found, out, _ = gcbench(*PAIR, *more, "--json", "-", "--quiet")
    assert found == status
    (comparison,) = json.loads(out)["comparisons"]
    assert comparison["verdict"] == ("worse" if slower > 0 else "better")


def test_nothing_measured_is_status_three(gcbench, monkeypatch):
    gcbench.machine = Machine(broken=".")
    assert gcbench(*PAIR)[0] == 3
    status, _, err = gcbench("run", *TINY)
    assert status == 3
    assert err.splitlines()[-1] == "gcbench: no result: it fell over"
    assert gcbench(*NOISE)[0] == 3


def test_a_cell_that_was_asked_for_and_could_not_be_timed_is_status_three(gcbench):
    pair = [each.replace("default,disabled", "default,freeze") for each in PAIR]
    gcbench.machine = Machine(broken="freeze")
    status, out, _ = gcbench(*pair)
    assert (status, out.splitlines()[0]) == (3, "No result of freeze.")
    gcbench.machine = Machine(0.2, broken="freeze")
    three = [each.replace("default,disabled", "default,freeze,threshold:5000") for each in PAIR]
    status, out, _ = gcbench(*three)
    assert status == 3
    assert "No result of freeze." in out
    assert gcbench(*three, "--fail-on", "worse")[0] == 1, "worse is worse, whatever is missing"


def test_a_comparison_beside_another_measurement_waits_or_says_so(gcbench, tmp_path, monkeypatch):
    lease = tmp_path / "lease"
    monkeypatch.setenv("GCBENCH_LEASE", str(lease))
    gcbench.machine = Machine()
    with held(lease):
        status, _, err = gcbench(*PAIR, "--wait", "0.1s")
        assert status == 3
        assert f"waiting for another measurement, process {os.getpid()} since" in err
        assert err.splitlines()[-1].startswith("gcbench: another measurement has not ended within")
        status, out, err = gcbench(*PAIR, "--wait", "no", "--json", "-")
    assert status == 0
    notes = json.loads(out)["notes"]
    assert [note for note in notes if "Measured beside another gcbench, process" in note]
    assert gcbench(*PAIR)[0] == 0


def test_a_lease_by_a_relative_path_is_refused_before_anything_runs(gcbench, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GCBENCH_LEASE", "lease")
    gcbench.machine = Machine()
    status, _, err = gcbench(*PAIR)
    assert status == 2
    assert err == (
        "gcbench: GCBENCH_LEASE=lease: a lease that holds for all programs needs an absolute path, "
        "such as /tmp/gcbench-lease; empty: no lease\n"
    )
    assert gcbench.machine.asked == 0
    assert not (tmp_path / "lease").exists()


@pytest.mark.parametrize("rounds", ["0", "1", "2"])
def test_noise_of_too_few_rounds_is_refused_before_anything_runs(gcbench, tmp_path, rounds):
    gcbench.machine = Machine()
    status, _, err = gcbench(*NOISE, "--rounds", rounds)
    assert status == 2
    assert err == f"gcbench: --rounds {rounds}: must be at least 3\n"
    assert gcbench.machine.asked == 0
    assert not (tmp_path / "runs").exists()


def test_noise_of_three_rounds_is_measured(gcbench):
    gcbench.machine = Machine()
    assert gcbench(*NOISE, "--rounds", "3")[0] == 0


class OnlyOne(Machine):
    """Gives one of two equal cells a result in its first two rounds, and then no more."""

    def run(self, trials: list[Trial]):
        for outcome in super().run(trials):
            if outcome.cell.copy and self.asked > 4:
                fields = {"cell": outcome.cell, "mode": outcome.mode, "seed": outcome.seed}
                yield TrialFailure(**fields, kind="crashed", reason="it fell over")
            else:
                yield outcome


def test_noise_with_too_few_whole_rounds_has_no_floor(gcbench, tmp_path):
    path = tmp_path / "answer.json"
    gcbench.machine = OnlyOne()
    status, out, err = gcbench(*NOISE, "--json", str(path))
    assert (status, out) == (3, "")
    assert "incomplete, not enough trials: " in err.splitlines()[-1]
    said = json.loads(path.read_text())
    assert (said["is_complete"], said["trial_cv"], said["mde"]) == (False, None, {})


def test_a_noise_floor_says_how_long_a_round_took_unless_it_was_resumed(gcbench, tmp_path):
    path = tmp_path / "answer.json"
    gcbench.machine = Machine()
    assert gcbench(*NOISE, "--json", str(path))[0] == 0
    said = json.loads(path.read_text())
    assert said["seconds_per_round"] > 0
    gcbench.machine = Machine()
    assert gcbench(*NOISE, "--json", str(path), "--resume", said["name"])[0] == 0
    assert json.loads(path.read_text()) == said | {"seconds_per_round": 0.0}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--rounds", "7"], "--rounds: says how noise is measured; give --noise, too"),
        (["--gc", "freeze"], "--gc: says how noise is measured; give --noise, too"),
        (["--wait", "1m"], "--wait: says how noise is measured; give --noise, too"),
        (["--like", "a"], "--like a: names a node of a cluster; give --cluster, too"),
        (["--noise", "--like", "a"], "--like a: names a node of a cluster; give --cluster, too"),
    ],
)
def test_the_doctor_refuses_what_only_noise_or_a_cluster_takes(gcbench, words, sentence):
    gcbench.machine = Machine()
    assert gcbench("doctor", *words) == (2, "", f"gcbench: {sentence}\n")
    assert gcbench.machine.asked == 0


@pytest.mark.parametrize(
    ("command", "where"),
    [
        ("noise", "gcbench doctor --noise"),
        ("workload", "gcbench list workloads NAME"),
        ("cadence", "gcbench advise --predict"),
        ("crossover", "gcbench advise --models"),
        ("http", "gcbench load --http-cost"),
        ("merge", "gcbench report --merge RUN RUN"),
        ("history", "gcbench report RESULTS"),
    ],
)
def test_a_command_that_is_gone_says_where_it_went(gcbench, command, where):
    status, out, err = gcbench(command, "--json", "-")
    assert (status, out) == (2, "")
    assert err.startswith(f"gcbench: no command '{command}' any more: {where} ")


@pytest.mark.parametrize("moment", [1, 2, 3, 5, 8, 12, 20])
def test_an_interrupted_comparison_goes_on_where_it_was(gcbench, monkeypatch, tmp_path, moment):
    gcbench.machine = Machine(0.2, interrupt_at=moment)
    status, _, err = gcbench(*PAIR)
    assert status == 130
    (name,) = re.findall(r"--resume\s+(\S+)", err)
    kept = len(list((tmp_path / "runs" / name / "trials").iterdir()))
    machine = Machine(0.2)
    gcbench.machine = machine
    status, out, _ = gcbench(*PAIR, "--resume", name, "--json", "-", "--quiet")
    assert status == 0
    whole = len(list((tmp_path / "runs" / name / "trials").iterdir()))
    still_counting = kept < 8
    more = (not still_counting) + (kept > 0)
    assert machine.asked == whole - kept + more, "one warms up, one says where trials run now"
    assert [cell["samples"] for cell in json.loads(out)["cells"]] == [9, 9]
    before = machine.asked
    status, out, err = gcbench(*PAIR, "--resume", name, "--rounds", "11", "--json", "-")
    assert status == 0
    assert f"{whole} trials are stored; checking that new ones compare" in err
    assert machine.asked == before + 2 * 2 + 2, "two more rounds of two cells, and as above"
    assert [cell["samples"] for cell in json.loads(out)["cells"]] == [11, 11]
    status, _, err = gcbench(*PAIR, "--resume", name, "--rounds", "5")
    assert status == 2
    assert "another plan" in err
    assert len(err.splitlines()) == 1


def test_an_interrupted_comparison_says_so_wherever_it_is_read(gcbench, monkeypatch, tmp_path):
    path = tmp_path / "answer.json"
    gcbench.machine = Machine(0.2, interrupt_at=16)
    status, out, _ = gcbench(*PAIR, "--json", str(path))
    assert status == 130
    assert out.startswith("✗ Incomplete: interrupted before everything was measured")
    assert "Best" not in out
    (stored,) = (tmp_path / "runs").glob("*/result.json")
    for text in (path.read_bytes(), stored.read_bytes()):
        result = msgspec.json.decode(text, type=ExperimentResult)
        assert not result.is_complete
        assert "Interrupted before everything was measured." in result.notes
    gcbench.machine = Machine(0.2)
    (name,) = (folder.name for folder in (tmp_path / "runs").iterdir())
    _, out, _ = gcbench(*PAIR, "--resume", name, "--json", "-")
    assert json.loads(out)["is_complete"]
    assert "Interrupted" not in out


def test_noise_that_was_interrupted_gives_no_floor(gcbench, tmp_path):
    path = tmp_path / "answer.json"
    gcbench.machine = Machine(interrupt_at=10)
    status, out, err = gcbench(*NOISE, "--json", str(path))
    assert (status, out) == (130, "")
    assert "interrupted, incomplete: 4 of 14 rounds measured and no noise floor" in err
    said = json.loads(path.read_text())
    assert (said["schema"], said["is_complete"]) == ("gcbench.result/1", False)
    assert (said["rounds"], said["trial_cv"], said["sd_log_ratio"], said["mde"]) == (
        4,
        None,
        None,
        {},
    )
    (folder,) = (tmp_path / "runs").iterdir()
    assert (folder / "incomplete.txt").read_text().endswith(f"--resume {folder.name}\n")
    assert not json.loads((folder / "result.json").read_text())["is_complete"]
    gcbench.machine = Machine()
    status, *_ = gcbench(*NOISE, "--json", str(path), "--resume", folder.name)
    said = json.loads(path.read_text())
    assert (status, said["is_complete"], said["rounds"]) == (0, True, 14)
    assert said["sd_log_ratio"] > 0
    assert not (folder / "incomplete.txt").exists()


@pytest.mark.parametrize("arguments", [PAIR, NOISE, ["run", *TINY]])
def test_files_are_complete_where_standard_output_is_full(
    gcbench, monkeypatch, tmp_path, arguments
):
    gcbench.machine = Machine()
    path = tmp_path / "answer.json"
    with full_standard_output(monkeypatch):
        status, _, err = gcbench(*arguments, "--json", str(path))
    assert status == 74
    assert err.splitlines()[-1].startswith("gcbench: standard output cannot be written: No space")
    assert json.loads(path.read_text())


def test_one_failure_is_said_once_with_how_often(gcbench, monkeypatch):
    gcbench.machine = Machine(broken=".")
    _, out, err = gcbench(*PAIR)
    assert err.count("it fell over") == 1
    assert out.count("it fell over") == 1
    said = " ".join(out.split())
    assert re.search(r"default; disabled \(counts, .*\d+ times\) crashed: it fell over", said)


def python_m_harness(*arguments: str, **options) -> subprocess.Popen:
    command = [sys.executable, "-m", "harness", *arguments]
    return subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


def test_a_real_run_prints_a_result_that_decodes(tmp_path):
    with python_m_harness("run", *TINY, "--quiet", "--json", "-", "--output", str(tmp_path)) as run:
        out, err = run.communicate(timeout=600)
    assert (run.returncode, err) == (0, "")
    trial = msgspec.json.decode(out, type=RunResult).trial
    assert trial.schema == "gcbench.trial-result/1"
    assert trial.metrics["num_steps"] >= 12
    (stored,) = tmp_path.glob("*/result.json")
    assert json.loads(stored.read_text()) == json.loads(out)
    assert len(list(tmp_path.glob("*/trials/*.json"))) == 1


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_finished_and_leaves_no_process(tmp_path):
    output = ["--output", str(tmp_path), "--rounds", "50"]
    with python_m_harness(*PAIR, *output, start_new_session=True, **HEARS_CTRL_C) as comparing:
        wait_for(lambda: len(list(tmp_path.glob("*/trials/*.json"))) >= 3, comparing)
        ended = len(list(tmp_path.glob("*/trials/*.json")))
        children = psutil.Process(comparing.pid).children(recursive=True)
        os.kill(comparing.pid, signal.SIGINT)
        _, err = comparing.communicate(timeout=600)
    assert comparing.returncode == 130
    assert "--resume" in err
    assert "Traceback" not in err
    until(lambda: not any(map(is_alive, children)))
    (folder,) = tmp_path.iterdir()
    assert len(list((folder / "trials").iterdir())) >= ended
    msgspec.json.decode((folder / "result.json").read_bytes(), type=ExperimentResult)


@pytest.mark.slow
@pytest.mark.landing
def test_a_real_comparison_from_end_to_end(tmp_path):
    words = [*PAIR, "--rounds", "3", "--json", "-", "--quiet", "--output", str(tmp_path)]
    with python_m_harness(*words) as comparing:
        out, _ = comparing.communicate(timeout=1800)
    assert comparing.returncode == 0
    (folder,) = tmp_path.iterdir()
    assert (folder / "result.json").read_text() == out
    assert list((folder / "rows").glob("*-steps.parquet"))
    result = json.loads(out)
    assert result["schema"] == "gcbench.result/1"
    assert {"machine", "workloads", "cells", "comparisons"} <= result.keys()
    assert all({"name", "hash"} <= each.keys() for each in result["workloads"])
    for cell in result["cells"]:
        assert {"id", "axes", "samples", "metrics", "processes", "tokens_sha256"} <= cell.keys()
        assert cell["samples"] == 3
        for metric in cell["metrics"].values():
            assert {"unit", "direction", "kind", "median", "samples"} <= metric.keys()
            assert metric["kind"] in ("exact", "timing")
        for process in cell["processes"]:
            assert {"role", "policy", "collections", "pause_seconds", "state"} <= process.keys()
            assert len(process["collections"]) == len(process["pause_seconds"]) == 3
    assert cell["metrics"]["gc_collections_gen0"]["kind"] == "exact"
    (comparison,) = result["comparisons"]
    assert {"metric", "baseline", "candidate", "ratio", "ci95", "verdict"} <= comparison.keys()
    assert (comparison["metric"], comparison["baseline"]) == ("host_time_per_step", "default")


@pytest.mark.parametrize(
    ("setup", "flags", "says"),
    [
        (
            "served",
            ["--axis", "prefix-caching=off"],
            "--axis prefix-caching: --axis setup=served decides",
        ),
        (
            "served",
            ["--output-processing", "inline"],
            "--output-processing: --axis setup=served decides",
        ),
        ("lean,served", ["--axis", "prefix-caching=off"], "a token each here"),
        ("served", [], "a token each here"),
    ],
)
def test_what_another_axis_decides_in_each_cell_is_refused(setup, flags, says, tmp_path, capsys):
    """What else is asked for, too few blocks, is refused after it."""
    flags = [*flags, "--axis", f"setup={setup}", "--axis", "num-gpu-blocks-override=1"]
    flags += ["--engine", "sglang-hostpath", "--output", str(tmp_path)]
    assert main(["compare", *flags]) == 2
    assert says in capsys.readouterr().err

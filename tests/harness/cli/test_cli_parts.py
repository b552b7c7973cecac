"""`gcbench compare --experiment`: parts of a file, one table, published figures beside it."""

import json
import re
from pathlib import Path
from textwrap import dedent

import msgspec
import pytest
from small import answer

from harness.cli.main import main
from harness.experiment import experiment_file
from harness.experiment.executor import Executor
from harness.experiment.experiment_file import PartsResult
from harness.report.parts import describe_parts
from harness.report.parts_table import parts_table
from harness.result.result import RESULT_SCHEMA
from harness.trial.spec import TrialFailure

FILE = """
    question = "Does it cost anything?"
    note = "change: of the host time"

    [flags]
    device = "null"
    num-requests = 8
    output-lens = "12"
    representation = "list_of_lists"
    delivery = "per_request"
    gc = ["default", "freeze"]
    heap-objects = 0
    counting = false
    rounds = 7

    [[columns]]
    title = "host"
    metric = "host_time_per_step"

    [[columns]]
    title = "expected"
    metric = "gc_pause_share"
    shows = "baseline"

    [[columns]]
    title = "change"
    metric = "host_time_per_step"
    shows = "change"

    [[parts]]
    title = "two at a time"
    flags = { batch-size = 2 }
    published = [{ source = "somebody", figures = { host = "7", change = "-3 %" } }]

    [[parts]]
    title = "four at a time"
    flags = { batch-size = 4 }
"""


class Machine(Executor):
    """Without its collector a cell takes 0.8 of the time.

    ``interrupt_at``: at which trial. ``cannot``: the batch size that it has no room for.
    """

    def __init__(self, interrupt_at: int = 0, cannot: int = 0) -> None:
        self.interrupt_at, self.cannot, self.asked = interrupt_at, cannot, []

    def batch_size(self, cells):
        return 1

    def run(self, trials):
        for trial in trials:
            self.asked.append(trial)
            if len(self.asked) == self.interrupt_at:
                raise KeyboardInterrupt
            if trial.cell.batch_size == self.cannot:
                yield TrialFailure(
                    cell=trial.cell,
                    mode=trial.mode,
                    seed=trial.seed,
                    kind="crashed",
                    reason="no room",
                )
                continue
            seconds = trial.cell.batch_size * (1e-3 if trial.cell.gc == "default" else 0.8e-3)
            yield answer(
                trial,
                {"host_time_per_step": seconds, "gc_pause_share": 0.25, "phase_process": seconds},
            )


@pytest.fixture
def compare(tmp_path, capsys):
    """Run a file's experiment: status, what it printed, what it said of errors."""
    path = tmp_path / "mine.toml"
    path.write_text(dedent(FILE))

    def call(*arguments: str) -> tuple[int, str, str]:
        words = ["compare", "--experiment", str(path), "--output", str(tmp_path / "runs")]
        status = main([*words, *arguments], lambda _timeout: call.machine)
        said = capsys.readouterr()
        return status, said.out, said.err

    call.machine, call.path = Machine(), path
    return call


def test_parts_stand_in_one_table_beside_what_others_have_published(compare, tmp_path):
    status, out, err = compare("--json", str(tmp_path / "answer.json"))
    assert status == 0
    rows = [line.split() for line in out.splitlines()]
    assert ["two", "at", "a", "time"] in rows
    assert ["default", "2.00", "–", "–"] in rows
    assert ["freeze", "1.60", "-25.0", "%", "▲", "-20.0", "%", "±0.00"] in rows
    assert ["somebody", "7", "-3", "%"] in rows
    assert ["default", "4.00", "–", "–"] in rows
    assert "part 2 of 2: four at a time" in err
    assert max(map(len, out.splitlines())) <= 100
    said = json.loads((tmp_path / "answer.json").read_text())
    assert (said["schema"], said["is_complete"]) == (RESULT_SCHEMA, True)
    assert [part["title"] for part in said["parts"]] == ["two at a time", "four at a time"]
    assert [part["result"]["tolerance"] for part in said["parts"]] == [0.02, 0.02]
    names = {part["result"]["name"] for part in said["parts"]}
    assert names == {f"{said['name']}.1", f"{said['name']}.2"}
    assert names < {folder.name for folder in (tmp_path / "runs").iterdir()}


def wholes(folder) -> set[Path]:
    """The results that are not of a part alone."""
    found = (folder / "runs").glob("*/result.json")
    return {path for path in found if not path.parent.suffix}


def test_stored_parts_are_read_again_as_one_report(compare, tmp_path, capsys):
    printed = compare()[1]
    assert printed.startswith(
        "▲ freeze: host time per step -20.0 % against default; better in 2 of 2 parts.\n"
    )
    (folder,) = (path.parent for path in wholes(tmp_path))
    again = ["report", folder.name, "--output", str(tmp_path / "runs")]
    assert main(again) == 0
    assert (
        capsys.readouterr().out.partition("\nsurroundings")[0]
        == printed.partition("\nsurroundings")[0]
    )
    assert main([*again, "--details"]) == 0
    assert "two at a time\n- Best: freeze" in capsys.readouterr().out
    files = {kind: tmp_path / f"x.{kind}" for kind in ("html", "md", "png")}
    assert main([*again, "--html", str(files["html"]), "--export", f"markdown={files['md']}"]) == 0
    assert files["html"].read_text().count("<figure>") == 2
    assert files["md"].read_text().startswith("### gcbench compare: ▲ freeze: host time")
    assert main([*again, "--image", str(files["png"])]) == 0
    assert files["png"].read_bytes().startswith(b"\x89PNG"), "of the first part"


def test_parts_that_disagree_or_compare_something_else_are_told_apart(compare, tmp_path):
    compare.machine = Machine(cannot=4)
    assert "▲ freeze" not in compare("--rounds", "3")[1]
    (path,) = wholes(tmp_path)
    of = msgspec.json.decode(path.read_bytes(), type=PartsResult)
    assert describe_parts(of).answer.startswith("? No verdict on freeze: a verdict takes 7 rounds")
    compare.machine = Machine()
    assert compare("--quiet")[0] == 0
    (path,) = wholes(tmp_path) - {path}
    of = msgspec.json.decode(path.read_bytes(), type=PartsResult)
    first, second = of.parts
    (found,) = first.result.comparisons
    worse = msgspec.structs.replace(found, ratio=1.1, verdict="worse")

    def with_first(comparison) -> PartsResult:
        result = msgspec.structs.replace(first.result, comparisons=[comparison])
        parts = [msgspec.structs.replace(first, result=result), second]
        return msgspec.structs.replace(of, parts=parts, columns=[])

    assert describe_parts(with_first(worse)).answer == (
        "▲ freeze: host time per step -20.0 to +10.0 % against default; better in 1 of 2 parts, "
        "worse in 1."
    )
    assert describe_parts(with_first(msgspec.structs.replace(worse, rounds=5))).sentences[0] == (
        "No verdict in 1 of 2 parts: a verdict takes 7 rounds, and this run has 5 there."
    )
    other = with_first(msgspec.structs.replace(found, metric="tpot_median"))
    assert describe_parts(other).answer == "▲ 2 comparisons, each of a part alone: 2 better."
    assert [each.partition(": ")[0] for each in describe_parts(other).sentences[:2]] == [
        "two at a time",
        "four at a time",
    ]
    assert parts_table(other).columns == ("", "host time per step\nms", "change")


def test_the_command_line_goes_before_the_file(compare):
    assert compare("--gc", "default,freeze", "--rounds", "3", "--quiet")[0] == 0
    assert {trial.cell.gc for trial in compare.machine.asked} == {"default", "freeze"}
    assert {trial.cell.batch_size for trial in compare.machine.asked} == {2, 4}
    assert len({trial.seed for trial in compare.machine.asked}) == 3


def test_phases_of_a_step_are_shown_for_each_part(compare):
    assert "Phases" not in compare("--rounds", "1")[1]
    _, out, _ = compare("--rounds", "1", "--details")
    for title, default in (("two at a time", "2,000"), ("four at a time", "4,000")):
        table = out.partition(f"{title}: Phases of a step")[2]
        row = next(line for line in table.splitlines() if line.startswith("default"))
        assert default in row.split()


def test_worse_in_any_part_fails_where_that_was_asked_for(compare):
    quiet = ("--quiet", "--baseline", "gc=freeze")
    assert compare(*quiet)[0] == 0
    assert compare(*quiet, "--fail-on", "worse")[0] == 1
    assert compare("--quiet", "--fail-on", "worse")[0] == 0, "what is better is not worse"


def test_a_part_of_which_nothing_was_measured_is_no_success(compare):
    compare.machine = Machine(cannot=4)
    status, out, _ = compare("--rounds", "3")
    assert status == 3
    assert "no room" in out


@pytest.mark.parametrize("moment", [2, 5, 17, 30])
def test_an_interrupted_experiment_goes_on_in_its_part(compare, tmp_path, moment):
    compare.machine = Machine(interrupt_at=moment)
    status, out, err = compare("--json", str(tmp_path / "answer.json"))
    assert status == 130
    assert not json.loads((tmp_path / "answer.json").read_text())["is_complete"]
    (name,) = re.findall(r"--resume\s+(\S+)", err)
    kept = len(list((tmp_path / "runs").glob("*/trials/*.json")))
    compare.machine = Machine()
    status, out, _ = compare("--resume", name, "--json", str(tmp_path / "answer.json"))
    assert status == 0
    assert json.loads((tmp_path / "answer.json").read_text())["is_complete"]
    assert "▲ -20.0 %" in out
    whole = len(list((tmp_path / "runs").glob("*/trials/*.json")))
    assert whole == 28
    assert whole - kept <= len(compare.machine.asked) <= whole - kept + 4, "four warm up or look"


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("gc = [", "gcc = [", "gcc: no such flag or axis here; did you mean gc"),
        ('"two at a time"', '"four at a time"', "two are called 'four at a time'"),
        ("host_time_per_step", "host_time_per_stp", "did you mean host_time_per_step"),
        ('host = "7"', 'hots = "7"', "no column 'hots'; did you mean host"),
        ("batch-size = 2", 'batch-size = "many"', "--batch-size many: must be whole numbers"),
        ("batch-size = 4", "batch-size = 0", "--batch-size 0: must be 1 or more"),
        ('shows = "change"', 'shows = "chance"', "Invalid enum value 'chance'"),
        ("question =", "queston =", "unknown field `queston`"),
        ("[[parts]]", "[[parts", "not TOML"),
        ("rounds = 7", 'output = "x"', "'output' is of the whole run"),
    ],
)
def test_a_mistake_in_a_file_is_said_in_a_sentence_before_anything_runs(
    compare, before, after, words
):
    compare.path.write_text(compare.path.read_text().replace(before, after, 1))
    status, out, err = compare()
    assert (status, out) == (2, "")
    (line,) = err.splitlines()
    assert words in line
    assert "mine" in line
    assert compare.machine.asked == []


def test_what_never_began_or_is_no_files_run_is_not_gone_on_with(compare, tmp_path):
    assert compare("--quiet")[0] == 0
    part = next((tmp_path / "runs").glob("*.1")).name
    for name in ("nothing", part):
        compare.machine = Machine()
        status, out, err = compare("--resume", name)
        assert (status, out) == (2, "")
        assert f"--resume {name}: no run of an experiment's file in " in err
        assert compare.machine.asked == []


def test_an_unknown_experiment_is_named_with_its_nearest(capsys):
    assert main(["compare", "--experiment", "output-procesing"]) == 2
    assert "did you mean output-processing" in capsys.readouterr().err


@pytest.mark.parametrize("name", experiment_file.experiment_names())
def test_what_comes_with_the_package_can_be_run(name, tmp_path, capsys):
    """By the parts' grids; a machine that answers nothing is enough."""
    machine = Machine(interrupt_at=1)
    words = ["compare", "--experiment", name, "--output", str(tmp_path), "--quiet"]
    assert main(words, lambda _timeout: machine) == 130
    assert "Invalid" not in capsys.readouterr().err

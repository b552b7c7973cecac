"""`gcbench reproduce`: claims and results measured again, and what of them holds here."""

import json
from pathlib import Path
from textwrap import dedent

import pytest
from small import answer

from harness.claims import ledger
from harness.claims.reproduction import REPRODUCTION_SCHEMA
from harness.cli.main import main
from harness.experiment.executor import Executor

FILE = """
    [[threads]]
    id = "notes"
    title = "Notes"

    [measurements.collector]
    command = "gcbench compare --device null --num-requests 8 --batch-size 8 --output-lens 12 {}"
    {}

    [[claims]]
    id = "faster"
    thread = "notes"
    says = "Without a collector a step takes a tenth less."
    published = "-10 %"
    why = "It does not run."
    measurement = "collector"

    [claims.holds_if]
    metric = "host_time_per_step"
    cell = {{ gc = "disabled" }}
    against = {{ gc = "default" }}
    at_most = 0.9

    [[claims]]
    id = "short"
    thread = "notes"
    says = "There are twelve steps."
    published = "12"
    why = "One token per step."
    measurement = "collector"

    [claims.holds_if]
    metric = "num_steps"
    cell = {{ gc = "default" }}
    at_least = 12
    at_most = 12

    [[claims]]
    id = "elsewhere"
    thread = "notes"
    says = "It is as fast on the moon."
    published = "as fast"
    why = "Nobody is there."
    declared = "not testable here"
"""
FLAGS = (
    "--representation list_of_lists --delivery per_request --gc default,disabled "
    "--heap-objects 0 --no-counting"
)


class Machine(Executor):
    """Without its collector a cell takes ``factor`` of the time."""

    def __init__(self, factor: float = 0.8, interrupt_at: int = 0) -> None:
        self.factor, self.interrupt_at, self.asked = factor, interrupt_at, []

    def batch_size(self, cells):
        return 1

    def run(self, trials):
        for trial in trials:
            self.asked.append(trial)
            if len(self.asked) == self.interrupt_at:
                raise KeyboardInterrupt
            seconds = 1e-3 if trial.cell.gc == "default" else self.factor * 1e-3
            yield answer(trial, {"host_time_per_step": seconds, "num_steps": 12})


@pytest.fixture
def gcbench(tmp_path, capsys, monkeypatch):
    """Run a command line in a folder of its own: status, what it printed, what it said."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str, str]:
        status = main([*arguments], lambda _timeout: call.machine)
        said = capsys.readouterr()
        return status, said.out, said.err

    call.machine = Machine()
    return call


@pytest.fixture
def compared(gcbench, monkeypatch):
    """A file that compare has written, of a command that ran as `gcbench compare …`."""
    words = ["compare", "--device", "null", "--num-requests", "8", *FLAGS.split()]
    monkeypatch.setattr("sys.argv", ["gcbench", *words, "--json", "found.json"])
    assert gcbench(*words, "--json", "found.json", "--quiet")[0] == 0
    gcbench.machine = Machine()
    return "found.json"


def mine(flags: str = FLAGS, result: str = "") -> str:
    Path("mine.toml").write_text(dedent(FILE).format(flags, result))
    return "mine.toml"


def test_a_ledger_of_ones_own_is_measured_again_and_each_claim_judged(gcbench):
    status, out, err = gcbench("reproduce", mine(), "--json", "answers.json")
    assert status == 3, "one of the claims cannot be measured"
    rows = {line.split()[0]: line for line in out.splitlines() if line.strip()}
    assert rows["faster"].split()[1:] == ["-10", "%", "–", "-20.0", "%", "✓", "holds"]
    assert rows["short"].split()[1:] == ["12", "–", "12", "steps", "✓", "holds"]
    assert "– not measured" in rows["elsewhere"]
    assert "Nobody is there." in out
    assert len(gcbench.machine.asked) <= 2 * 10 + 4, "two claims have one command: it ran once"
    said = json.loads(Path("answers.json").read_text())
    assert (said["schema"], said["is_complete"]) == (REPRODUCTION_SCHEMA, True)
    assert [each["now"] and each["now"]["settled"] for each in said["answers"]] == [
        "held",
        "held",
        None,
    ]
    assert "command 1 of 2" in err


@pytest.mark.parametrize(
    ("factor", "rounds", "ruling", "failing"),
    [(0.8, "7", "held", 0), (0.95, "7", "not held", 1), (0.8, "2", "not settled", 0)],
)
def test_fail_on_tells_a_claim_that_does_not_hold_from_one_that_is_not_settled(
    gcbench, factor, rounds, ruling, failing
):
    gcbench.machine = Machine(factor)
    path = mine().replace("mine", "one")
    Path(path).write_text(Path("mine.toml").read_text().split('[[claims]]\nid = "short"')[0])
    words = ["reproduce", path, "--rounds", rounds, "--json", "-"]
    status, out, _ = gcbench(*words)
    assert status == 0
    (found,) = json.loads(out)["answers"]
    assert found["now"]["settled"] == ruling
    assert gcbench(*words, "--fail-on", "not-held", "--quiet")[0] == failing


def test_a_stored_result_stands_beside_the_new_one(gcbench, compared):
    status, out, _ = gcbench("reproduce", mine(result=f'result = "{compared}"'))
    assert status == 3
    (row,) = [line for line in out.splitlines() if line.startswith("faster")]
    assert row.count("-20.0 %") == 2


@pytest.mark.parametrize(
    ("factor", "here"), [(0.8, "✓ holds"), (1.25, "✗ does not hold"), (1.0, "✗ does not hold")]
)
def test_verdicts_of_a_stored_comparison_are_asked_for_again(gcbench, compared, factor, here):
    gcbench.machine = Machine(factor)
    status, out, _ = gcbench("reproduce", compared)
    assert status == 0
    (row,) = [line for line in out.splitlines() if line.startswith("disabled")]
    assert "▲ better -20.0 %" in row
    assert here in row


def test_a_stored_comparison_with_too_few_rounds_now_settles_nothing(gcbench, compared):
    status, out, _ = gcbench("reproduce", compared, "--rounds", "3")
    assert status == 0
    assert "? not settled" in out
    assert "A verdict takes 7 rounds, this run has 3." in out


def test_parts_of_an_experiment_are_asked_for_again(gcbench, monkeypatch):
    Path("parts.toml").write_text(
        dedent("""
        question = "Does it cost anything?"
        [flags]
        device = "null"
        num-requests = 8
        gc = ["default", "disabled"]
        representation = "list_of_lists"
        delivery = "per_request"
        heap-objects = 0
        counting = false
        [[columns]]
        title = "host"
        metric = "host_time_per_step"
        [[parts]]
        title = "two at a time"
        flags = { batch-size = 2 }
        [[parts]]
        title = "four at a time"
        flags = { batch-size = 4 }
    """)
    )
    words = ["compare", "--experiment", "parts.toml", "--json", "found.json", "--quiet"]
    monkeypatch.setattr("sys.argv", ["gcbench", *words])
    assert gcbench(*words)[0] == 0
    status, out, _ = gcbench("reproduce", "found.json", "--output", "elsewhere")
    assert status == 0
    assert len(list(Path("elsewhere").glob("*/trials"))) == 2
    for part in ("two", "four"):
        (row,) = [line for line in out.splitlines() if line.startswith(f"{part} at a time")]
        assert "✓ holds" in row


def test_a_file_without_verdicts_is_asked_for_the_claims_that_rest_on_it(gcbench):
    """Exact figures have none."""
    stored = Path(ledger.__file__).parents[2] / "results/published/claims/wires-batch-4.json"
    _, out, _ = gcbench("reproduce", str(stored), "--json", "-")
    asked = {each["question"]["id"] for each in json.loads(out)["answers"]}
    resting = {each.id for each in ledger.load().claims if each.measurement == "wires-batch-4"}
    assert asked == resting != set()


def test_an_interrupted_run_is_not_taken_for_an_answer(gcbench):
    gcbench.machine = Machine(interrupt_at=9)
    status, out, err = gcbench("reproduce", mine(), "--json", "answers.json")
    assert (status, out) == (130, "")
    assert err.endswith("interrupted: 0 of 3 conclusions were measured\n")
    said = json.loads(Path("answers.json").read_text())
    assert (said["is_complete"], [each["now"] for each in said["answers"]]) == (False, [None] * 3)


def test_without_arguments_the_claims_are_listed(gcbench):
    status, out, _ = gcbench("reproduce")
    assert status == 0
    ids = [claim.id for claim in ledger.load().claims]
    assert [each for each in ids if f"  {each} " not in out] == []
    status, out, _ = gcbench("reproduce", "--json", "-")
    assert status == 0
    assert [each["question"]["id"] for each in json.loads(out)["answers"]] == ids


@pytest.mark.parametrize(
    ("what", "words"),
    [
        (
            "26369-gen0-each-stp",
            "no claim '26369-gen0-each-stp'; did you mean 26369-gen0-each-step",
        ),
        ("README.md", "no claim 'README.md' (`gcbench reproduce` lists them"),
        ("nowhere.toml", "nowhere.toml: the claim cannot be read: No such file or directory"),
        ("nowhere.json", "nowhere.json cannot be read"),
        ("gate.json", "gate.json has schema 'gcbench.gate/5', this gcbench reads"),
        ("noise.json", "its command is `gcbench releases vllm`; only those of gcbench compare"),
        ("open.json", "no comparison in it has settled anything, and no claim rests on it"),
    ],
)
def test_what_cannot_be_reproduced_is_said_in_a_sentence(gcbench, compared, what, words):
    found = json.loads(Path(compared).read_text())
    Path("gate.json").write_text('{"schema": "gcbench.gate/5"}')
    Path("noise.json").write_text(json.dumps(found | {"command": "gcbench releases vllm"}))
    Path("open.json").write_text(json.dumps(found | {"comparisons": []}))
    status, out, err = gcbench("reproduce", what)
    assert (status, out) == (2, "")
    (line,) = err.splitlines()
    assert words in line
    assert gcbench.machine.asked == []


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("--rounds many", "Invalid value for '--rounds': 'many'"),
        ("--no-such-flag", "No such option"),
        ("--help", "No such option"),
    ],
)
def test_a_command_that_compare_does_not_take_is_refused_before_anything_runs(
    gcbench, flags, words
):
    status, out, err = gcbench("reproduce", mine(flags))
    assert (status, out) == (2, "")
    (line,) = err.splitlines()
    assert words in line
    assert gcbench.machine.asked == []


def test_what_cannot_run_on_this_machine_is_named_and_not_measured(gcbench):
    status, out, _ = gcbench("reproduce", mine("--representation no_such_shape"))
    assert status == 3
    assert "no_such_shape" in out
    assert out.count("– not measured") == 3


@pytest.mark.parametrize("given", [["--rounds", "0"], ["--fail-on", "worse"]])
def test_wrong_usage_is_status_2(gcbench, given):
    assert gcbench("reproduce", mine(), *given)[0] == 2


@pytest.mark.slow
def test_a_small_claim_is_measured_for_real(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = mine(FLAGS + " --rounds 1")
    status = main(["reproduce", path, "--json", "answers.json", "--quiet"])
    assert status == 3
    assert capsys.readouterr().out == ""
    found = {
        each["question"]["id"]: each["now"]
        for each in json.loads(Path("answers.json").read_text())["answers"]
    }
    assert found["faster"]["settled"] == "not settled", "one round has no interval"
    assert found["elsewhere"] is None

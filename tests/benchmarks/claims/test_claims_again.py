"""`python -m benchmarks.claims`: claims measured again, and what of them holds."""

import msgspec
import pytest
from golden_text import printed
from small import CELL

from benchmarks.claims.__main__ import exit_code, main
from benchmarks.claims.again import Answer, ask, ask_tool, compare
from benchmarks.claims.finding import Finding
from benchmarks.claims.ledger import load
from benchmarks.claims.stored import PUBLISHED, read_results, stored_findings
from benchmarks.claims.tables import print_answers
from harness.trial.spec import TrialFailure

LEDGER = load()
FILES = {each.command: each.result for each in LEDGER.measurements.values()}
BY_ID = {claim.id: claim for claim in LEDGER.claims}
COLLECTOR = ("26369-thresholds", "26369-threshold-plus-batch", "26369-threshold-helps")
TINY = (
    "gcbench compare --device null --num-requests 8 --batch-size 8 --output-lens 12 --rounds 1 "
    "--representation list_of_lists --delivery per_request --gc default,disabled "
    "--heap-objects 0 --no-counting"
)


def published(command: str):
    return read_results(PUBLISHED / FILES[command])


def finding(settled: str) -> Finding:
    return Finding(settled=settled, value=1.0, ci95=(1.0, 1.0))


def test_a_claim_is_settled_by_what_was_measured_now():
    claims = [BY_ID[name] for name in COLLECTOR]
    stored = stored_findings(LEDGER, claims)
    measured = []

    def measure(command):
        measured.append(command)
        return published(command)

    answers = ask(LEDGER, claims, measure)
    assert {each.claim.id: each.findings for each in answers} == stored
    assert measured == [LEDGER.measurements["collector"].command], "one command tells of all three"


def test_parts_of_an_experiment_are_told_apart_by_their_titles():
    (result,) = published(LEDGER.measurements["collector"].command).values()
    claim = BY_ID[COLLECTOR[0]]
    (wanted,) = claim.holds_if
    in_a_part = msgspec.structs.replace(
        claim, holds_if=[msgspec.structs.replace(wanted, part="small")]
    )
    (answer,) = ask(LEDGER, [in_a_part], lambda _: {"large": result, "small": result})
    assert [each.settled for each in answer.findings] == ["held"]
    (answer,) = ask(LEDGER, [in_a_part], lambda _: {"large": result})
    assert (answer.findings, answer.reason) == ((), "there is no part 'small': large")


def test_what_cannot_be_tested_says_why_and_runs_nothing():
    claim = BY_ID["29033-fix-forward"]
    assert ask(LEDGER, [claim], {}.__getitem__) == [Answer(claim, reason=claim.why)]


def test_a_tool_is_asked_once_for_all_claims_that_its_document_tells_of():
    asked = []

    def read(command):
        asked.append(command)
        return {"list_of_lists": 1025, "list_of_arrays": 1, "padded_arrays": 1}

    claims = [BY_ID["26369-list-per-request"], BY_ID["26368-one-matrix"]]
    lists, matrix = ask(LEDGER, claims, {}.__getitem__, read)
    assert asked == [LEDGER.documents["handoff-objects"].command]
    assert [each.settled for each in lists.findings] == ["held"]
    assert [each.settled for each in matrix.findings] == ["held", "not held"]
    assert exit_code([lists, matrix]) == 1


def test_several_measurements_of_one_claim_are_all_run_and_one_that_fails_leaves_it_unanswered():
    claim = BY_ID["7049-overlap"]
    commands = [LEDGER.source(each).command for each in claim.conditions]
    (answer,) = ask(LEDGER, [claim], published)
    assert len(answer.findings) == len(set(commands)) > 1

    def measure(command):
        if command == commands[-1]:
            raise ValueError("the machine is busy")
        return published(command)

    assert ask(LEDGER, [claim], measure) == [Answer(claim, reason="the machine is busy")]


def test_the_last_line_that_a_tool_prints_is_its_document(capfd):
    assert ask_tool("""python -c 'print("one"); print("[2]")'""") == [2]
    with pytest.raises(ValueError, match="ended with status 3 and no document"):
        ask_tool("python -c 'raise SystemExit(3)'")


def test_a_command_that_measures_nothing_leaves_its_claims_unanswered_and_others_go_on():
    def measure(command):
        if command == LEDGER.measurements["collector"].command:
            raise ValueError("the machine is busy")
        return published(command)

    claims = [BY_ID[COLLECTOR[0]], BY_ID["26368-untracked"], BY_ID[COLLECTOR[1]]]
    answers = {each.claim.id: each for each in ask(LEDGER, claims, measure)}
    assert [answers[name].reason for name in COLLECTOR[:2]] == ["the machine is busy"] * 2
    assert [each.settled for each in answers["26368-untracked"].findings] == ["held"]


def test_a_cell_that_could_not_run_is_explained_by_its_failure():
    (result,) = published(LEDGER.measurements["collector"].command).values()
    failure = TrialFailure(cell=CELL, mode="timing", seed=0, kind="refused", reason="no room")
    failed = msgspec.structs.replace(result, cells=[], failures=[failure])
    (answer,) = ask(LEDGER, [BY_ID[COLLECTOR[0]]], lambda _: {"": failed})
    assert (answer.findings, answer.reason) == ((), "no room")


@pytest.mark.parametrize(
    ("settled", "status"),
    [
        (["held", "held"], 0),
        (["held", "not held"], 1),
        ([None, "not held"], 1),
        (["held", "not settled"], 3),
        (["held", None], 3),
    ],
)
def test_only_what_holds_is_status_0(settled, status):
    claim = BY_ID[COLLECTOR[0]]
    answers = [Answer(claim, [finding(each)] if each else []) for each in settled]
    assert exit_code(answers) == status


def test_published_stored_and_new_figures_stand_beside_each_other():
    claim = BY_ID["26369-gen2-after-10"]
    answers = [
        Answer(claim, [finding("not held")]),
        Answer(BY_ID["6241-empty-params"], reason="The release is too old."),
    ]
    text = printed(print_answers, answers, stored_findings(LEDGER, [claim]))
    (row,) = (line.split() for line in text.splitlines() if line.startswith("26369-gen2"))
    assert row[1:] == ["10", "73.5", "1.00", "✗", "does", "not", "hold"]
    assert "– not measured" in text
    assert "1 does not hold, 1 not measured" in text
    said = " ".join(text.split())
    assert f"{claim.id}: {claim.says} It holds if" in said
    assert said.endswith("The release is too old.")


def test_without_a_name_the_claims_are_listed(capsys):
    assert main([]) == 0
    out = capsys.readouterr().out
    assert [name for name in BY_ID if f"  {name} " not in out] == []


def test_a_name_that_is_none_is_told_with_its_nearest(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["26369-gen0-each-stp"])
    said = capsys.readouterr().err
    assert "no claim '26369-gen0-each-stp'; did you mean 26369-gen0-each-step" in said


@pytest.mark.slow
def test_a_command_is_run_with_more_flags_behind_it(capfd, tmp_path):
    (result,) = compare(TINY, ["--output", str(tmp_path), "--batch-size", "4"]).values()
    assert {cell.axes["batch_size"] for cell in result.cells} == {4}
    assert [cell.axes["gc"] for cell in result.cells] == ["default", "disabled"]
    assert capfd.readouterr().out == ""


@pytest.mark.slow
def test_a_command_that_is_refused_has_measured_nothing(capfd):
    with pytest.raises(ValueError, match="ended with status 2"):
        compare(TINY, ["--gc", "no_such_policy"])
    assert "no_such_policy" in capfd.readouterr().err

"""A gate seeks cells that run what a change has touched, and names what none of them runs."""

from pathlib import Path

import msgspec
import pytest
from planted_history import Commit, Edit, make

from harness.cli.main import main
from harness.tracking.gate.result import GateResult

INT = Edit(
    "engines/builtin/representations/int_or_list.py",
    "        return sampled\n\n    def columns(",
    "        for _ in sampled:\n            pass\n        return sampled\n\n    def columns(",
)
ENCODE = "    def encode_step(self, step: SchedulerOutput) -> list[Buffer]:\n"
WIRE = "engines/builtin/wire/msgpack.py"
SPARE = Edit(WIRE, ENCODE, "    def spare(self) -> int:\n        return 1\n\n" + ENCODE)
NUMBER = Edit(WIRE, "        self.number += 1\n", "        self.number += len([1])\n")

LAG = "        if len(self._under_way) <= lag:\n"
LOOP = "            for _ in range(500):\n                pass\n"
LATE = Edit("engines/builtin/engine.py", LAG, f"        if lag:\n{LOOP}{LAG}")
NEVER = Edit("engines/builtin/engine.py", LAG, f"        if lag > 9:\n{LOOP}{LAG}")


def gated(tmp_path, edits: list[Edit], status: int, *flags: str) -> GateResult:
    """What a gate says of a commit that makes these edits."""
    commits = [Commit("Stand still", "", []), Commit("Change", "", edits)]
    _, base, head = make(tmp_path / "repository", commits)
    report = tmp_path / "gate.json"
    given = ["--exact-only", "--output-lens", "40", "--num-requests", "64", "--quiet"]
    places = ["--repo", str(tmp_path / "repository"), "--output", str(tmp_path / "runs")]
    assert main(["gate", base, head, *given, *places, *flags, "--json", str(report)]) == status
    return msgspec.json.decode(report.read_bytes(), type=GateResult)


@pytest.mark.slow
def test_a_cell_is_added_that_runs_what_changed_and_finds_it_worse(tmp_path):
    found = gated(tmp_path, [INT], 1)
    assert [each.id for each in found.cells][2:] == ["int_or_list · per_request"]
    assert [each.verdict for each in found.cells] == ["same", "same", "worse"]
    assert found.not_run == []
    assert "--representation int_or_list" in found.cells[2].command


@pytest.mark.slow
def test_what_none_runs_is_named_and_where_a_way_is_known_that_too(tmp_path):
    found = gated(tmp_path, [SPARE, NUMBER], 3)
    assert found.verdict == "not covered"
    ways = {each.name.rpartition(".")[2]: each.way for each in found.not_run}
    assert ways["spare"] == ""
    assert ways["encode_step"] == "--worker process --wire msgpack"
    allowed = gated(tmp_path / "again", [NUMBER], 0, "--allow-uncovered")
    assert (allowed.verdict, len(allowed.not_run)) == ("same", 1)


@pytest.mark.slow
def test_a_cell_is_added_that_takes_a_branch_of_a_function_that_has_run(tmp_path):
    found = gated(tmp_path, [LATE], 1)
    assert [each.verdict for each in found.cells] == ["same", "same", "worse"]
    assert "--output-processing overlapped" in found.cells[2].command
    assert found.not_run == []


@pytest.mark.slow
def test_a_branch_that_no_cell_takes_is_named_though_its_function_runs(tmp_path):
    found = gated(tmp_path, [NEVER], 3)
    assert found.verdict == "not covered"
    (step,) = found.not_run
    source = (Path(found.head.folder) / step.file).read_text().splitlines()
    assert (step.name, step.line) == ("Engine.step", step.statements[0].first)
    assert [source[each.first - 1] + "\n" for each in step.statements] == LOOP.splitlines(True)

"""The gate over commits that leak, hide in free lists, die in one call or collect by hand."""

import msgspec
import pytest
from planted_history import ENGINE, INIT, PROCESS, STEP, Commit, Edit, make

from harness.cli.main import main
from harness.tracking.gate.result import GateResult

KEEP = "        self._kept: list[object] = []\n"


def commit(subject: str, *lines: str, before: str = PROCESS) -> Commit:
    """The lines, in every step (or before those that ``before`` names), and a list to keep in."""
    body = "".join(f"        {line}\n" for line in lines)
    edits = [Edit(ENGINE, INIT, KEEP + INIT), Edit(ENGINE, before, before + body)]
    return Commit(subject, "", edits)


PLANTED = {
    "a dictionary a step, for good": (
        commit("Keep a note of each step", 'self._kept.append({"rows": [len(step.output.rows)]})'),
        {"leaked_objects_per_step", "tracked_survivors_per_step"},
        "a step leaves 2 more tracked objects behind for good",
    ),
    "a dictionary that is not tracked": (
        commit("Count each step", 'self._kept.append({"rows": len(step.output.rows)})'),
        {"leaked_blocks_per_step", "memory_kept_per_step"},
        "more blocks of memory behind for good that the collector does not track",
    ),
    "a tuple a request": (
        commit("Pair rows", "rows = step.output.rows.tolist()", "self._kept[:] = zip(rows, rows)"),
        {"tracked_peak_per_step"},
        "at its peak a step has 1,024 more tracked objects alive (+1 a request)",
    ),
    "an int a request": (
        commit("Sum places", "self._kept += (step.output.rows + 1000).tolist()"),
        {"leaked_blocks_per_step", "memory_kept_per_step", "allocated_blocks_kept_per_step"},
        "blocks of memory behind for good that the collector does not track",
    ),
    "a list that lives and dies in one call": (
        commit("Sum rows", "sum((step.output.rows + 1000).tolist() * 4)"),
        {"memory_peak_per_step"},
        "at its peak a step takes more bytes",
    ),
    "a collection every 20 steps": (
        Commit(
            "Tidy up",
            "",
            [
                Edit(ENGINE, "import time\n", "import gc\nimport time\n"),
                Edit(ENGINE, INIT, "        self._num_steps = 0\n" + INIT),
                Edit(
                    ENGINE,
                    STEP,
                    STEP
                    + "        self._num_steps += 1\n"
                    + "        if self._num_steps % 20 == 0:\n"
                    + "            gc.collect()\n",
                ),
            ],
        ),
        {"explicit_collections"},
        "the collector is called by hand",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", PLANTED)
def test_each_is_worse_by_exact_counts_and_said(tmp_path, what):
    planted, metrics, words = PLANTED[what]
    _, base, head = make(tmp_path / "repository", [Commit("Stand still", "", []), planted])
    report = tmp_path / "gate.json"
    flags = ["--exact-only", "--output-lens", "110", "--quiet", "--json", str(report)]
    places = ["--repo", str(tmp_path / "repository"), "--output", str(tmp_path / "runs")]
    assert main(["gate", base, head, *flags, *places]) == 1
    result = msgspec.json.decode(report.read_bytes(), type=GateResult)
    worse = set()
    for cell in result.cells:
        worse |= {change.metric for change in cell.exact if change.verdict == "worse"}
    assert metrics <= worse
    said = " ".join(result.conclusions)
    assert words in said
    assert ("tracked objects are as many as before" in said) <= ("tuple" not in what)
    if "collection" in what:
        assert "(gen 2, engines/builtin/engine.py:" in said
        assert " in Engine.step)" in said

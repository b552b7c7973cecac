"""The gate over commits that leak, hide in free lists, die in one call or collect by hand."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import pytest
from planted_history import ENGINE, INIT, PROCESS, STEP, Commit, Edit, make

from harness.cli.main import main
from harness.tracking.gate.result import GateResult

KEEP = "        self._kept, self._pairs = list[object](), list[object]()\n"
LIST_BYTES = 3 * 1024 * 8
"""Fewer than the pointers take in a list of four times a full batch, which fills a peak in part."""


def commit(subject: str, *lines: str, also: Sequence[Edit] = ()) -> Commit:
    """The lines, in every step, and lists to keep in."""
    body = "".join(f"        {line}\n" for line in lines)
    edits = [Edit(ENGINE, INIT, KEEP + INIT), Edit(ENGINE, PROCESS, PROCESS + body)]
    return Commit(subject, "", [*edits, *also])


TIDY = [
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
]


class Planted(NamedTuple):
    """A commit, by which it must read worse, and what must be said of it."""

    commit: Commit
    metrics: set[str]
    words: list[str]


PLANTED = {
    "a dictionary a step for good, a list that dies in one call, collections by hand": Planted(
        commit(
            "Keep a note of each step",
            'self._kept.append({"rows": [len(step.output.rows)]})',
            "sum((step.output.rows + 1000).tolist() * 4)",
            also=TIDY,
        ),
        {
            "leaked_objects_per_step",
            "tracked_survivors_per_step",
            "memory_peak_per_step",
            "explicit_collections",
        },
        [
            "a step leaves 2 more tracked objects behind for good",
            "the collector is called by hand",
            "(gen 2, engines/builtin/engine.py:",
            " in Engine.step)",
        ],
    ),
    "a dictionary that is not tracked, a tuple a request": Planted(
        commit(
            "Pair rows",
            'self._kept.append({"rows": len(step.output.rows)})',
            "rows = step.output.rows.tolist()",
            "self._pairs[:] = zip(rows, rows)",
        ),
        {"leaked_blocks_per_step", "memory_kept_per_step", "tracked_peak_per_step"},
        [
            "more blocks of memory behind for good that the collector does not track",
            "at its peak a step has 1,024 more tracked objects alive (+1 per request)",
        ],
    ),
    "a place in a list for each request that has ended": Planted(
        commit(
            "Note what ends",
            also=[
                Edit(
                    ENGINE,
                    "            self._finished[index] = tokens\n",
                    "            self._finished[index] = tokens; self._kept.append(None)\n",
                )
            ],
        ),
        {"leaked_bytes_per_request"},
        [
            "memory that is never freed: +8.00 B leaked/request (0 B → 8.00 B)",
            "8.00 B per request, list at engines/builtin/engine.py:",
        ],
    ),
    "an int a request": Planted(
        commit("Sum places", "self._kept += (step.output.rows + 1000).tolist()"),
        {"leaked_blocks_per_step", "memory_kept_per_step", "allocated_blocks_kept_per_step"},
        ["more blocks of memory behind for good that the collector does not track"],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", PLANTED)
def test_each_is_worse_by_exact_counts_and_said(tmp_path, what):
    planted, metrics, words = PLANTED[what]
    _, base, head = make(tmp_path / "repository", [Commit("Stand still", "", []), planted])
    report = tmp_path / "gate.json"
    flags = ["--exact-only", "--output-lens", "64", "--quiet", "--json", str(report)]
    places = ["--repo", str(tmp_path / "repository"), "--output", str(tmp_path / "runs")]
    assert main(["gate", base, head, *flags, *places]) == 1
    result = msgspec.json.decode(report.read_bytes(), type=GateResult)
    risen: dict[str, float] = {}
    for cell in result.cells:
        risen |= {
            change.metric: change.after - change.before
            for change in cell.exact
            if change.verdict == "worse"
        }
    assert metrics <= risen.keys()
    if "in one call" in what:
        assert risen["memory_peak_per_step"] > LIST_BYTES
    said = " ".join(result.conclusions)
    for sentence in words:
        assert sentence in said
    assert ("tracked objects are as many as before" in said) <= ("tuple" not in what)

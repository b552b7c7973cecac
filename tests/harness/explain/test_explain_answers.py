"""`gcbench explain` tells whatever it was asked in one shape, and so does a stored answer."""

import msgspec
import pytest
from made_functions import SUM, function
from release_results import along

from harness.collector.sites import AllocationSite, CollectionSites
from harness.explain.changes import function_changes
from harness.explain.growth import arrivals
from harness.explain.result import ExplainResult, FunctionsBody, GrowthBody, Side, SitesBody
from harness.explain.version_cost import version_cost
from harness.report.explain import explain_answer, explain_header, explain_markdown, explain_tables
from harness.trial.step_costs import StepCosts


def side(label: str, bytecodes: int) -> Side:
    functions = [function(SUM, "Engine.step", bytecodes=bytecodes)]
    costs = StepCosts(num_steps=2, num_rows=4, functions=functions, calls=[])
    return Side(label=label, roots=[], costs=costs, metrics={})


OLD, NEW = side("1.0", 40), side("2.0", 50)
SITE = AllocationSite(
    file="engine/step.py",
    line=7,
    type="list",
    share=1.0,
    share_error=0.0,
    pause_share=1.0,
    promoted=0,
    retained=0,
    path=[],
)
BODIES = {
    "one version": FunctionsBody(by="bytecodes", side=NEW),
    "two versions": FunctionsBody(
        by="bytecodes", side=NEW, against=OLD, changes=function_changes(OLD.costs, NEW.costs)
    ),
    "growth": GrowthBody(
        by="bytecodes",
        versions=[version_cost(OLD), version_cost(NEW)],
        arrivals=arrivals([OLD, NEW]),
    ),
    "sites": SitesBody(
        label="2.0",
        num_steps=2,
        roots=[],
        found=CollectionSites(collections=(3, 0, 0), young=30, sites=[SITE]),
    ),
}


@pytest.fixture(params=BODIES)
def result(request) -> ExplainResult:
    made = along({"0.11.0": 1})
    return ExplainResult(
        name="an-answer",
        command="gcbench explain",
        machine=made.machine,
        workload=made.workloads[0],
        axes={"engine": "builtin"},
        body=BODIES[request.param],
        notes=["a note"],
    )


def test_each_answer_is_told_from_what_was_stored_as_it_was(result):
    stored = msgspec.json.decode(msgspec.json.encode(result), type=ExplainResult)
    assert stored == result
    assert explain_answer(stored) == explain_answer(result)
    assert explain_tables(stored, 10) == explain_tables(result, 10)


def test_each_has_the_same_header_and_all_its_parts_in_markdown(result):
    labels = [label for label, _ in explain_header(result)]
    assert labels == ["versions", "machine", "workload", "cell", "counted", "command"]
    text = explain_markdown(result, 10)
    tables = explain_tables(result, 10)
    assert tables
    for part in (*(table.title for table in tables), *labels, "a note"):
        assert f"**{part}**" in text or f"- {part}" in text
    first = text.splitlines()[0]
    assert first.startswith("- ")
    assert any(word in first for word in ("2.0", "collector"))


def test_what_was_interrupted_says_so_first(result):
    cut = msgspec.structs.replace(result, is_complete=False)
    assert explain_header(cut)[0][0] == "incomplete"
    assert explain_header(cut)[1:] == explain_header(result)

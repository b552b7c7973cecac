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
from harness.report.explain import describe_explain
from harness.report.markdown import report_markdown
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
        workloads=made.workloads[:1],
        axes={"engine": "builtin"},
        body=BODIES[request.param],
        notes=["a note"],
    )


def test_each_has_the_same_facts_and_all_its_parts_in_markdown(result):
    report = describe_explain(result)
    assert [label for label, _ in report.facts] == [
        "versions",
        "machine",
        "workload",
        "cell",
        "counted",
    ]
    assert any(word in report.answer for word in ("2.0", "collector"))
    assert report.tables
    text = report_markdown(report)
    for table in report.tables:
        assert f"**{table.title}**" in text
    assert "- a note" in text


def test_what_was_interrupted_says_so_first(result):
    cut = msgspec.structs.replace(result, is_complete=False)
    assert describe_explain(cut).attention.startswith("Interrupted before everything")

"""`gcbench explain` tells whatever it was asked in one shape, and so does a stored answer."""

import msgspec
import pytest
from explain_bodies import BODIES
from release_results import along

from harness.explain.result import ExplainResult
from harness.render.markdown import report_markdown
from harness.report.explain import describe_explain


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

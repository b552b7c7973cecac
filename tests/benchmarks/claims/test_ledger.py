"""The ledger of the four threads: complete, current, and of commands that can be run."""

import shlex
from functools import cache
from pathlib import Path
from textwrap import dedent

import pytest
from golden_text import assert_golden

from benchmarks.claims import ledger
from benchmarks.claims.finding import Finding
from benchmarks.claims.ledger import Claim
from benchmarks.claims.page import claims_markdown
from benchmarks.claims.stored import PUBLISHED, stored_findings
from benchmarks.claims.words import ruling
from harness.cli.compare import compare

ROOT = Path(__file__).parents[3]
SHIPPED = ledger.load()


@cache
def stored() -> dict[str, list[Finding]]:
    return stored_findings(SHIPPED, SHIPPED.claims)


def test_the_page_is_that_of_the_ledger_and_of_the_published_results():
    assert_golden("../../docs/claims.md", claims_markdown(SHIPPED, stored()))


@pytest.mark.parametrize("claim", SHIPPED.claims, ids=lambda claim: claim.id)
def test_each_claim_is_ruled_on(claim: Claim):
    """By a stored result; only one that is declared to need a GPU, or not testable, has none."""
    assert ruling(claim, stored()) != "not settled"
    assert claim.says.endswith(".")
    assert claim.why.endswith(".")
    assert claim.published


@pytest.mark.parametrize("name", SHIPPED.measurements)
def test_each_command_is_one_that_compare_takes_and_tells_of_a_claim(name):
    program, command, *words = shlex.split(SHIPPED.measurements[name].command)
    assert (program, command) == ("gcbench", "compare")
    compare.make_context("compare", words)
    assert any(each.measurement == name for claim in SHIPPED.claims for each in claim.holds_if)


@pytest.mark.parametrize("name", SHIPPED.documents)
def test_each_tool_is_one_of_the_repository_and_tells_of_a_claim(name):
    program, flag, module, *_ = shlex.split(SHIPPED.documents[name].command)
    assert (program, flag) == ("python", "-m")
    assert (ROOT / module.replace(".", "/")).with_suffix(".py").exists()
    assert any(each.document == name for claim in SHIPPED.claims for each in claim.reads)


def test_results_that_are_kept_for_claims_are_used_by_one():
    sources = (*SHIPPED.measurements.values(), *SHIPPED.documents.values())
    used = {source.result for source in sources}
    assert {f"claims/{path.name}" for path in (PUBLISHED / "claims").glob("*.json")} <= used


FILE = """
    [[threads]]
    id = "notes"
    title = "Notes"

    [measurements.freeze]
    command = "gcbench compare --gc default,freeze"

    [[claims]]
    id = "freeze"
    thread = "notes"
    says = "It is faster."
    published = "+3 %"
    why = "So they say."

    [[claims.holds_if]]
    measurement = "freeze"
    metric = "request_throughput"
    cell = { gc = "freeze" }
    against = { gc = "default" }
    at_least = 1.03
"""


READS = """[[claims.reads]]
    document = "notes"
    figure = ["bytes"]
    about = 611

    [[claims.holds_if]]"""


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ('thread = "notes"', 'thread = "note"', "no thread 'note'"),
        ('measurement = "freeze"', 'measurement = "frezee"', "no measurement 'frezee'"),
        ('measurement = "freeze"', "", "missing required field `measurement`"),
        ("request_throughput", "request_throughptu", "no metric 'request_throughptu'"),
        ("cell = { gc", "cell = { gcc", "no axis 'gcc'"),
        ("at_least = 1.03", "", "give about, or else at_least, at_most or both, or a verdict"),
        ("at_least = 1.03", "at_least = 1\nabout = 1.03", "give about, or else at_least"),
        ("at_least = 1.03", 'at_least = 1\nverdict = "same"', "a verdict or bounds, not both"),
        ("[[claims.holds_if]]", READS, "no document 'notes'"),
        ("at_least = 1.03", 'verdict = "fine"', "Invalid enum value 'fine'"),
        ('against = { gc = "default" }\nat_least = 1.03', 'verdict = "same"', "a verdict is on"),
        ("published", "publisht", "unknown field `publisht`"),
        ("[[claims]]", "[[claims", "not TOML"),
        ('why = "So', 'declared = "no idea"\nwhy = "So', "Invalid enum value 'no idea'"),
    ],
)
def test_a_mistake_in_a_ledger_is_one_sentence(tmp_path, before, after, words):
    path = tmp_path / "claims.toml"
    text = dedent(FILE)
    assert before in text
    path.write_text(text.replace(before, after, 1))
    with pytest.raises(ValueError, match=r"claims\.toml: ") as caught:
        ledger.load(path)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_has_a_result_cannot_be_declared_to_have_none(tmp_path):
    path = tmp_path / "claims.toml"
    text = dedent(FILE).replace('freeze"\n\n', 'freeze"\nresult = "a.json"\n\n', 1)
    path.write_text(text.replace("why =", 'declared = "needs a GPU"\nwhy =', 1))
    with pytest.raises(ValueError, match="so it cannot be declared 'needs a GPU'"):
        ledger.load(path)


def test_what_is_neither_measured_nor_declared_is_refused(tmp_path):
    path = tmp_path / "claims.toml"
    path.write_text(dedent(FILE).split("[[claims.holds_if]]", maxsplit=1)[0])
    with pytest.raises(ValueError, match="give holds_if or reads, or declare why not"):
        ledger.load(path)

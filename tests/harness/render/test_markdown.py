"""Whatever people call their workloads, branches and releases, Markdown shows it as it stands."""

import re

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token
from small import CELL, answer, plan, summary

from harness.experiment.plan import timing_round
from harness.experiment.result import ExperimentResult
from harness.experiment.store import trial_key
from harness.machine.describe import Machine
from harness.render.markdown import report_markdown, table_markdown
from harness.render.table import PlainTable
from harness.report.experiment import describe_experiment
from harness.result.result import ReplayedWorkload
from harness.trial.spec import Trial, TrialFailure

NASTY = "@org `x` [a](http://b.c) www.d.e #7 | <b onclick=1> *x* _y_ ~~z~~ &amp; \\ $q$"
OURS = re.compile(r"</?sub>|</?details>\n?|<details><summary>All figures</summary>\n")
TEXT = st.text(st.sampled_from("`*_[]<>&|~$\\@#:/-+=1.)w a"))


def tokens(text: str) -> list[Token]:
    """All of them, the inner ones too, as GitHub's parser finds them."""
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    return [inner for token in parser.parse(text) for inner in (token, *(token.children or []))]


def cells(text: str) -> list[str]:
    """What the cells of a table say."""
    each, is_cell = [], False
    for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text):
        if is_cell:
            each.append("".join(child.content for child in token.children or []))
        is_cell = token.type in ("th_open", "td_open")
    return each


def experiment() -> ExperimentResult:
    """One in which everything that people name is called something bad."""
    cells = [msgspec.structs.replace(CELL, workload=NASTY, release=name) for name in ("", NASTY)]
    of = plan(cells, rounds=7)
    outcomes = {}
    for number in range(1, of.rounds + 1):
        for turn in timing_round(of, number):
            asked = Trial(cell=turn.cell, schedule_path="", schedule_sha256="", seed=turn.seed)
            result = answer(asked, {"host_time_per_step": 1.0 + turn.seed % 97 / 1e4})
            outcomes[trial_key(number, turn.place, turn.cell, "timing")] = result
    made = summary(of, outcomes)
    failed = TrialFailure(cell=cells[1], mode="counts", seed=0, kind="crashed", reason=NASTY)
    return msgspec.structs.replace(
        made,
        name=NASTY,
        notes=[NASTY],
        command=NASTY,
        code_commits=[NASTY],
        failures=[failed],
        workloads=[ReplayedWorkload(name=NASTY)],
        machine=Machine(cpu_model=NASTY),
    )


def test_nothing_that_people_name_becomes_markup():
    found = tokens(report_markdown(describe_experiment(experiment())))
    kinds = {token.type for token in found}
    assert not {kind for kind in kinds if kind.startswith(("link", "image", "em_", "s_"))}
    assert {token.content for token in found if token.type.startswith("code")} == {NASTY}
    html = {token.content for token in found if token.type.startswith("html")}
    assert all(OURS.fullmatch(each) for each in html), html
    prose = "".join(token.content for token in found if token.type == "text")
    assert prose.count("onclick") >= 7
    assert not re.search(r"[@#]\w|://|www\.", prose)


@example(["= same", "-3.2 %", "1. a", "@org", "a|b\\"])
@given(st.lists(TEXT, min_size=1, max_size=5))
def test_cells_say_what_they_were_given_and_stay_apart(row):
    columns = tuple(f"c{number}" for number in range(len(row)))
    table = PlainTable("title", columns, [[tuple(row)]], "caption")
    made = cells(table_markdown(table))
    assert [text.replace("\u2060", "") for text in made] == [
        *columns,
        *(" ".join(text.split()) for text in row),
    ]


@given(TEXT, TEXT)
def test_titles_and_captions_say_what_they_were_given(title, caption):
    table = PlainTable(title, ("a",), [[("b",)]], caption)
    found = tokens(table_markdown(table))
    html = {token.content for token in found if token.type.startswith("html")}
    assert all(OURS.fullmatch(each) for each in html), html
    text = "".join(token.content for token in found if token.type == "text").replace("\u2060", "")
    for given_text in (title, caption):
        assert " ".join(given_text.split()) in " ".join(text.split())

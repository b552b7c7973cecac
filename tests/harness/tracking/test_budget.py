"""What may be added since a release: a change that spends more is worse, however little it is."""

import pytest
from scratch_repository import Repository, leave_git_alone
from small import CELL
from test_gate import EXACT, counted

from harness.tracking.gate.accepts_file import ACCEPTS_FILE
from harness.tracking.gate.budget import Budget, Growth, read_budget
from harness.tracking.gate.exact_counts import exact_changes, judge_pairs
from harness.tracking.gate.exact_words import exact_sentences
from harness.tracking.gate.plan import pair
from harness.tracking.gate.trees import Tree
from harness.tracking.gate.waivers import Waiver

BYTECODES = "bytecodes_per_request_step"
EACH = pair("cell", CELL, "base", "head", 0)


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """With an engine on ``main``, tagged v1."""
    leave_git_alone(monkeypatch, tmp_path)
    made = Repository(tmp_path / "repo")
    made.commit("engines", engines__engine="1")
    made.git("tag", "v1")
    return made


def with_budget(repository: Repository, since: str = "v1", most: str = f'{{{BYTECODES} = "+3 %"}}'):
    (repository.root / ACCEPTS_FILE).write_text(f'[budget]\nsince = "{since}"\nmost = {most}\n')
    repository.commit("budget", engines__engine="2")
    return read_budget(repository.root, "main", "engines")


def test_a_budget_is_heads_and_names_the_modes_that_count_it(repository):
    assert read_budget(repository.root, "main", "engines") is None
    most = '{tracked_peak_per_step = "+5", bytecodes_per_fixed = "+1 %"}'
    budget = with_budget(repository, most=most)
    assert budget is not None
    assert (budget.since, budget.modes) == ("v1", ["tracked", "grid"])
    assert budget.allowed["tracked_peak_per_step"].amount(1000) == 5
    assert budget.allowed["bytecodes_per_fixed"].amount(1000) == 10


@pytest.mark.parametrize(
    ("since", "most", "words"),
    [
        ("v2", f'{{{BYTECODES} = "+3 %"}}', "gate-accepts.toml, budget: "),
        ("v1", '{host_time_per_step = "+3 %"}', "'host_time_per_step' is no exact metric"),
        ("v1", f'{{{BYTECODES} = "3"}}', "'3' is not how much"),
        ("v1", '{outputs = ""}', "outputs do not grow"),
    ],
)
def test_a_budget_that_cannot_be_is_a_sentence(repository, since, most, words):
    with pytest.raises(ValueError, match=words):
        with_budget(repository, since, most)


def grown(then: float | None) -> Growth:
    """Of bytecodes, 3 % of which may be added to what they were at a release."""
    before = {} if then is None else {BYTECODES: then}
    tree = Tree(asked="v1", sha="", subject="", folder="v1")
    allowed = Waiver(metric=BYTECODES, most=0.03, is_share=True, cell="", place="", reason="v1")
    counts = counted([pair("cell", CELL, "v1", "other", 0)], {}, before)
    return Growth(Budget("v1", {BYTECODES: allowed}), tree, counts)


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        (102, 102.4, "same"),
        (102.8, 103.2, "worse"),
        (104, 104.001, "worse"),
        (104, 104, "same"),
        (104, 103.9, "same"),
        (104, 90, "better"),
        (90, 93, "worse"),
    ],
)
def test_what_adds_to_what_is_beyond_is_worse_however_little(before, after, verdict):
    trials = counted([EACH], {BYTECODES: after}, EXACT | {BYTECODES: before})
    (change,) = (each for each in exact_changes(trials, EACH, (), grown(100)).changes if each.since)
    assert (change.metric, change.verdict) == (BYTECODES, verdict)
    assert (change.since, change.budget) == (100, pytest.approx(3))


def test_a_waiver_is_held_to_the_digit_where_a_budget_is_spent():
    trials = counted([EACH], {BYTECODES: 104.4}, EXACT | {BYTECODES: 104})

    def verdict(most: float) -> str:
        made = Waiver(metric=BYTECODES, most=most, is_share=False, cell="", place="", reason="")
        (change,) = (
            each for each in exact_changes(trials, EACH, [made], grown(100)).changes if each.since
        )
        return change.verdict

    assert (verdict(0.4), verdict(0.3)) == ("accepted", "worse")


def test_it_is_said_where_the_release_cannot_be_counted_and_where_it_is_spent():
    trials = counted([EACH], {BYTECODES: 104.4}, EXACT | {BYTECODES: 104})
    lost = judge_pairs([EACH], trials, None, {}, str, growth=grown(None))
    assert [note for note in lost.notes if "budget was not looked at" in note]
    (cell,) = judge_pairs([EACH], trials, None, {}, str, growth=grown(100)).cells
    assert cell.verdict == "worse"
    said = [each for each in exact_sentences(cell) if "has grown" in each]
    assert said == [
        "bytecodes_per_request_step has grown by 4.40 since the release that gate-accepts.toml "
        "names, where 3 may be added; 0.400 of it is this change."
    ]

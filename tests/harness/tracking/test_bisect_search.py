"""The search of `gcbench bisect` against brute force, and the commits that it is given."""

from math import ceil, log2

import pytest
from hostile_repository import HostileRepository
from hypothesis import given
from hypothesis import strategies as st
from scratch_repository import Repository, leave_git_alone

from harness.metrics import METRICS
from harness.tracking.bisect.bisection import Bisection, CountedFigure
from harness.tracking.bisect.commits import commits_between, tree_of
from harness.tracking.bisect.counting import find_metric
from harness.tracking.bisect.result import Candidate
from harness.tracking.bisect.search import Search

BYTECODES = METRICS["bytecodes_per_request_step"]


class Line:
    """A made-up line of commits: ``figures`` by tree, None where it cannot run."""

    def __init__(self, trees: list[str], figures: dict[str, float | None]) -> None:
        self._trees, self._figures = trees, figures
        self.measured: list[str] = []
        self.said: list[int] = []

    def bisect(self, until: int | None = None) -> Bisection:
        """Search it, and be interrupted after ``until`` measurements."""

        def measure(candidate: Candidate, left: int) -> CountedFigure:
            if len(self.measured) == until:
                raise KeyboardInterrupt
            self.said.append(left)
            self.measured.append(tree := self._trees[int(candidate.id)])
            value = self._figures[tree]
            return CountedFigure(value, "" if value is not None else "it fell over")

        found = Bisection(
            [Candidate(id=str(number)) for number in range(len(self._trees))],
            BYTECODES,
            lambda each: self._trees[int(each.id)],
            measure,
        )
        try:
            found.run()
        except KeyboardInterrupt:
            assert until is not None
        return found


def one_step(length: int, culprit: int, broken: set[int], trees: list[str] | None = None) -> Line:
    """Commits of which those from ``culprit`` on cost 120 instead of 100 bytecodes."""
    trees = trees or [str(number) for number in range(length)]
    figures: dict[str, float | None] = {}
    for number, tree in enumerate(trees):
        figures.setdefault(tree, 120.0 if number >= culprit else 100.0)
        if number in broken:
            figures[tree] = None
    return Line(trees, figures)


def brute_force(length: int, culprit: int, broken: set[int]) -> list[int]:
    """All that can be told of one step when each commit is measured."""
    last_good = max(each for each in range(culprit) if each not in broken)
    first_bad = min(each for each in range(culprit, length) if each not in broken)
    return list(range(last_good + 1, first_bad + 1))


@st.composite
def lines(draw: st.DrawFn) -> tuple[int, int, set[int]]:
    length = draw(st.integers(2, 80))
    culprit = draw(st.integers(1, length - 1))
    inner = st.integers(1, length - 2) if length > 2 else st.nothing()
    return length, culprit, draw(st.sets(inner, max_size=length - 2))


@given(lines())
def test_it_finds_what_brute_force_finds_whatever_cannot_run(line):
    length, culprit, broken = line
    made = one_step(length, culprit, broken)
    found = made.bisect()
    assert list(found.search.suspects) == brute_force(length, culprit, broken)
    assert found.conclusion == ("found" if len(found.search.suspects) == 1 else "several")
    assert len(made.measured) == len(set(made.measured)), "nothing is measured twice"
    good, bad = found.search.good, found.search.bad
    assert (found.figures[good].value, found.figures[bad].value) == (100.0, 120.0)


@given(st.integers(2, 5000), st.data())
def test_it_takes_two_measurements_more_than_the_commits_can_be_halved(length, data):
    culprit = data.draw(st.integers(1, length - 1))
    made = one_step(length, culprit, set())
    found = made.bisect()
    assert list(found.search.suspects) == [culprit]
    assert len(made.measured) <= ceil(log2(length - 1)) + 2
    assert made.said[0] >= len(made.measured) - 1, "it never promises less than it takes"
    assert made.said == sorted(made.said, reverse=True)


@given(st.data())
def test_equal_trees_are_measured_once_and_the_step_is_found_among_them(data):
    """Commits that are taken back and made again, as reverts do."""
    length = data.draw(st.integers(2, 60))
    culprit = data.draw(st.integers(1, length - 1))
    names = [
        data.draw(st.sampled_from("abc")) + ("+" if number >= culprit else "")
        for number in range(length)
    ]
    broken_tree = data.draw(st.sampled_from([None, "a", "b+"]))
    ends = {names[0], names[-1]}
    broken = {
        number for number, name in enumerate(names) if name == broken_tree and name not in ends
    }
    made = one_step(length, culprit, broken, names)
    found = made.bisect()
    assert list(found.search.suspects) == brute_force(length, culprit, broken)
    assert len(made.measured) == len(set(made.measured)) <= 6


@pytest.mark.parametrize("first", [1, 2, 7])
@pytest.mark.parametrize("left", [1, 2, 30])
def test_the_only_commits_that_run_are_found_at_the_end_of_a_long_stretch(first, left):
    length = 3000
    made = one_step(length, length - 1, set(range(first, length - 1 - left)))
    assert list(made.bisect().search.suspects) == [length - 1]
    assert len(made.measured) < 100


@given(st.integers(3, 4000), st.data())
def test_a_stretch_that_cannot_run_beside_the_culprit_is_left_in_few_steps(length, data):
    begin = data.draw(st.integers(1, length - 2))
    end = data.draw(st.integers(begin, length - 2))
    outside = [each for each in range(1, length) if not begin <= each <= end + 1]
    if not outside:
        return
    culprit = data.draw(st.sampled_from(outside))
    made = one_step(length, culprit, set(range(begin, end + 1)))
    assert list(made.bisect().search.suspects) == [culprit]
    halvings = ceil(log2(length))
    assert len(made.measured) <= 2 + halvings * (4 * halvings + 1)


def test_a_single_commit_that_cannot_run_costs_one_measurement_more():
    made = one_step(65, 40, {32})
    assert list(made.bisect().search.suspects) == [40]
    assert len(made.measured) <= 2 + 6 + 1


@pytest.mark.parametrize(
    ("figures", "conclusion", "measured"),
    [
        ([100, 100, 100], "same", 2),
        ([100, 500, 100.1], "same", 2),
        ([None, 1, 2], "unmeasured", 1),
        ([1, 2, None], "unmeasured", 2),
        ([100, 120], "found", 2),
        ([100 + number / 5 for number in range(40)], "gradual", 8),
        ([100, None, 120], "several", 3),
    ],
)
def test_what_there_is_to_say(figures, conclusion, measured):
    trees = [str(number) for number in range(len(figures))]
    made = Line(trees, dict(zip(trees, figures, strict=True)))
    found = made.bisect()
    assert found.conclusion == conclusion
    assert len(made.measured) <= measured
    assert [each.verdict == "cannot run" for each in found.measured] == [
        figures[int(each.candidate.id)] is None for each in found.measured
    ]


@pytest.mark.parametrize("until", range(7))
def test_what_was_found_before_an_interrupt_stays(until):
    found = one_step(40, 23, set()).bisect(until)
    assert found.conclusion == "interrupted"
    assert 23 in found.search.suspects
    assert len(found.figures) == until
    assert [each.figure for each in found.measured] == [
        120.0 if int(each.candidate.id) >= 23 else 100.0 for each in found.measured
    ]


def test_figures_between_the_two_belong_to_the_nearer_one():
    figures = {"0": 100.0, "1": 104.0, "2": 118.0, "3": 120.0}
    found = Line(list(figures), figures).bisect()
    assert [each.verdict for each in found.measured] == ["good", "good", "bad", "bad"]
    assert list(found.search.suspects) == [2]


def test_neighbours_are_tried_in_growing_steps_and_then_the_ends_of_a_stretch():
    search, order = Search(0, 32), []
    for _ in range(11):
        position = search.next
        order.append(position)
        search.tell(position, "cannot run")
    assert order == [16, 15, 17, 14, 18, 12, 20, 8, 24, 4, 28]
    assert search.steps_left == 5


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("bytecodes_per_request", ["no such metric", "bytecodes_per_request_step"]),
        ("host_time_per_step", ["timed trials"]),
        ("wire_bytes_per_step", ["timed trials"]),
        ("num_steps", ["timed trials"]),
        ("tracked_heap", ["neither better nor worse"]),
        ("", ["no such metric"]),
    ],
)
def test_a_metric_that_cannot_be_searched_by_is_one_sentence(name, words):
    with pytest.raises(ValueError, match=r"^--metric") as caught:
        find_metric(name)
    for word in words:
        assert word in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.fixture
def repository(monkeypatch, tmp_path):
    leave_git_alone(monkeypatch, tmp_path)
    made = Repository(tmp_path / "repo")
    made.commit("first", engines__a="0", other="0")
    return made


def subjects(found):
    return [each.subject for each in found.candidates]


def test_only_commits_that_change_the_package_are_candidates(repository):
    repository.git("tag", "good")
    repository.commit("another file", other="1")
    repository.commit("a change", engines__a="1")
    repository.commit("nothing at all")
    repository.commit("taken back", engines__a="0")
    repository.commit("another file again", other="2")
    found = commits_between(repository.root / "engines", "good", "HEAD", "engines")
    assert subjects(found) == ["first", "a change", "taken back"]
    assert found.num_commits == 5
    trees = [tree_of(found.root, each.id, "engines") for each in found.candidates]
    assert trees[0] == trees[2] != trees[1]
    assert tree_of(found.root, found.candidates[0].id, "no_such") == ""
    first = found.candidates[1]
    assert (first.author, len(first.date), len(first.id)) == ("A", 10, 40)


def test_commits_that_leave_the_package_alone_end_in_the_last_of_them(repository):
    repository.git("tag", "good")
    repository.commit("one", other="1")
    repository.commit("two", other="2")
    found = commits_between(repository.root, "good", "HEAD", "engines")
    assert subjects(found) == ["first", "two"]


def test_a_merge_is_one_commit_and_its_branch_none(repository):
    repository.git("tag", "good")
    repository.git("checkout", "--quiet", "-b", "side")
    repository.commit("on the side", engines__b="1")
    repository.git("tag", "branch")
    repository.git("checkout", "--quiet", "main")
    repository.commit("on main", engines__a="1")
    repository.git("merge", "--quiet", "--no-ff", "-m", "the merge", "side")
    repository.commit("after", engines__a="2")
    found = commits_between(repository.root, "good", "main", "engines")
    assert subjects(found) == ["first", "on main", "the merge", "after"]
    found = commits_between(repository.root, "branch", "main", "engines")
    assert subjects(found) == ["on the side", "the merge", "after"], "no commit without GOOD's"


def test_a_merge_that_brings_only_main_to_good_is_a_candidate(repository):
    """Its package is that of its first parent, and not GOOD's."""
    repository.git("checkout", "--quiet", "-b", "side")
    repository.commit("on the side", other="1")
    repository.git("checkout", "--quiet", "main")
    repository.commit("on main", engines__a="1")
    repository.git("merge", "--quiet", "--no-ff", "-m", "the merge", "side")
    found = commits_between(repository.root, "side", "main", "engines")
    assert subjects(found) == ["on the side", "the merge"]


def test_names_that_are_no_utf_8_or_orders_can_be_written_as_json(repository):
    repository.git("tag", "good")
    repository.write(engines__a="1")
    repository.git("add", "--all")
    repository.git(
        "-c",
        "i18n.commitEncoding=bogus",
        "commit",
        "--quiet",
        "-m",
        "red \x1b[31m \udcff words",
        "--author",
        "Zo\udce9 <a@example.org>",
    )
    (_, found) = commits_between(repository.root, "good", "HEAD", "engines").candidates
    for text in (found.subject, found.author):
        assert text.encode()
    assert found.date[:2] == "20"


def test_no_program_that_a_repository_names_is_run(tmp_path, monkeypatch):
    leave_git_alone(monkeypatch, tmp_path)
    hostile = HostileRepository(tmp_path)
    root = hostile.copy_to(tmp_path / "checkout")
    found = commits_between(root, "HEAD~2", "HEAD", "engines")
    assert len(found.candidates) == 2
    assert tree_of(found.root, found.candidates[0].id, "engines")
    assert hostile.sprung() == set()

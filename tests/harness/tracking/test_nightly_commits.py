"""Which commits a night measures, against a model, on random histories."""

import random
from pathlib import Path

import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from planted_nights import fast_import, git

from harness.tracking.asv.checkout import rewritten
from harness.tracking.nightly.commits import subject, wanted_commits

GRAPHS, COMMITS = 6, 10


def graph(seed: int) -> list[tuple[str, list[int]]]:
    """Commits with up to two parents each, several of them roots or heads."""
    random_ = random.Random(seed)
    made: list[tuple[str, list[int]]] = []
    for number in range(COMMITS):
        some = min(number, random_.choice([0, 1, 1, 1, 1, 2, 2])) if number > 1 else number
        recent = range(max(0, number - 4), number)
        made.append((f"seed {seed}, {number}", random_.sample(recent, some)))
    return made


class World:
    """A repository, and the same as plain lists."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder / str(seed)
        self.parents = [parents for _, parents in graph(seed)]
        self.hashes = fast_import(self.folder, graph(seed))

    def line(self, head: int) -> list[int]:
        """First parents only, the newest first."""
        found = [head]
        while self.parents[found[-1]]:
            found.append(self.parents[found[-1]][0])
        return found

    def ancestors(self, heads: list[int]) -> set[int]:
        found, left = set[int](), list(heads)
        while left:
            found.add(each := left.pop())
            left += self.parents[each]
        return found

    def new(self, heads: list[int], measured: set[int], lost: set[int]) -> list[int]:
        """What `wanted_commits` is said to give where no range is asked for."""
        found: list[int] = []
        for head in heads:
            line = self.line(head)
            known = [place for place, each in enumerate(line) if each in measured]
            upto = known[0] if known else 1
            ask = [each for place, each in enumerate(line) if place < upto or each in lost]
            found += [each for each in reversed(ask) if each not in measured]
        return list(dict.fromkeys(found))


@pytest.fixture(scope="module")
def worlds(tmp_path_factory) -> list[World]:
    folder = tmp_path_factory.mktemp("graphs")
    return [World(folder, seed) for seed in range(GRAPHS)]


some = st.sets(st.integers(0, COMMITS - 1))


@examples(60)
@given(
    st.integers(0, GRAPHS - 1),
    st.lists(st.integers(0, COMMITS - 1), min_size=1, max_size=3),
    some,
    some,
)
def test_what_is_new_is_what_a_model_says(worlds, which, heads, measured, lost):
    world = worlds[which]
    lost -= measured
    found = wanted_commits(
        world.folder,
        [f"refs/tags/{head}" for head in heads],
        "",
        {world.hashes[each] for each in measured},
        {world.hashes[each][:8] for each in lost},
    )
    assert found == [world.hashes[each] for each in world.new(heads, measured, lost)]
    left = rewritten(world.folder, [world.hashes[head] for head in heads], world.hashes)
    assert left == set(world.hashes) - {world.hashes[each] for each in world.ancestors(heads)}


@examples(60)
@given(st.integers(0, GRAPHS - 1), st.integers(0, COMMITS - 1), st.integers(0, COMMITS - 1), some)
def test_a_range_is_its_first_parents_less_what_is_measured(worlds, which, since, head, measured):
    world = worlds[which]
    outside = world.ancestors([since])
    expected = []
    for each in world.line(head):
        if each in outside:
            break
        expected.append(world.hashes[each])
    known = {world.hashes[each] for each in measured}
    spec = f"{world.hashes[since]}..{world.hashes[head]}"
    if expected:
        found = wanted_commits(world.folder, ["main"], spec, known, set())
        assert found == [each for each in expected[::-1] if each not in known]
    else:
        with pytest.raises(ValueError, match="no commit"):
            wanted_commits(world.folder, ["main"], spec, known, set())
    alone = wanted_commits(world.folder, ["main"], world.hashes[head], set(), set())
    assert alone == [world.hashes[head]]


def test_what_git_does_not_know_is_refused_in_a_sentence(worlds, tmp_path):
    folder = worlds[0].folder
    for branches, spec in ((["no-such"], ""), (["main"], "no-such..main"), (["main"], "-n1")):
        with pytest.raises(ValueError) as caught:  # noqa: PT011
            wanted_commits(folder, branches, spec, set(), set())
        assert "\n" not in str(caught.value)
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{folder}", str(shallow))
    with pytest.raises(ValueError, match="git fetch --unshallow"):
        wanted_commits(shallow, ["main"], "HEAD~3..HEAD", set(), set())


def test_subjects(worlds):
    assert subject(worlds[0].folder, worlds[0].hashes[3]) == "seed 0, 3"
    assert subject(worlds[0].folder, "f" * 40) == ""

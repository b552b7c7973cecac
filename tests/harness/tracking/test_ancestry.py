"""What others have done is not blamed on HEAD without a word."""

import pytest
from scratch_repository import Repository, leave_git_alone

from harness.tracking.gate.ancestry import others_changes
from harness.tracking.gate.trees import WORK_TREE, take_tree

PACKAGE = "engines"


@pytest.fixture(autouse=True)
def _alone(monkeypatch, tmp_path):
    leave_git_alone(monkeypatch, tmp_path)


@pytest.fixture
def pull_request(tmp_path):
    """A branch from ``old``, merged into ``main`` after somebody else's ``others``."""
    made = Repository(tmp_path / "repo")
    made.commit("first", engines__a="1", engines__b="1", page="1")
    made.git("tag", "old")
    made.git("checkout", "--quiet", "-b", "branch")
    made.commit("ours", engines__a="2")
    made.git("checkout", "--quiet", "main")
    made.commit("others", engines__b="2")
    made.git("tag", "others")
    made.git("checkout", "--quiet", "-b", "landed")
    made.git("merge", "--quiet", "--no-ff", "branch", "--message", "merge")
    return made


def said(repository: Repository, base: str, head: str) -> str:
    folder = repository.root.parent / f"{base} {head}".replace("/", " ")
    trees = [
        take_tree(repository.root, commit, PACKAGE, folder / str(number))
        for number, commit in enumerate((base, head))
    ]
    return others_changes(repository.root, *trees, PACKAGE)


@pytest.mark.parametrize("head", ["landed", WORK_TREE])
def test_a_merge_into_another_commit_than_base(pull_request, head):
    short = pull_request.git("rev-parse", "--short=10", "others")
    words = said(pull_request, "old", head)
    assert words.startswith(f"HEAD is a merge whose first parent, {short}, is not BASE")
    assert f"gcbench gate {short} " in words


def test_a_base_that_has_gone_on(pull_request):
    short = pull_request.git("rev-parse", "--short=10", "old")
    words = said(pull_request, "main", "branch")
    assert words.startswith("BASE has changes in engines/ that HEAD lacks")
    assert f"gcbench gate {short} " in words


@pytest.mark.parametrize(
    ("base", "head"),
    [
        ("landed^1", "landed"),  # the recipe
        ("landed^2", "landed"),  # a branch that has taken in its base
        ("old", "branch"),
        ("branch", "old"),  # the other way round, on purpose
        ("landed", WORK_TREE),
        ("landed", "landed"),
    ],
)
def test_nothing_is_said_where_the_difference_is_heads_own(pull_request, base, head):
    assert said(pull_request, base, head) == ""


def test_what_others_did_outside_the_package_is_no_matter(pull_request):
    pull_request.git("checkout", "--quiet", "-B", "main", "old")
    pull_request.commit("a page", page="2")
    pull_request.git("checkout", "--quiet", "-B", "landed")
    pull_request.git("merge", "--quiet", "--no-ff", "branch", "--message", "merge")
    assert said(pull_request, "old", "landed") == ""
    assert said(pull_request, "main", "branch") == ""


def test_commits_without_a_common_one(pull_request):
    pull_request.git("checkout", "--quiet", "--orphan", "apart")
    pull_request.commit("apart", engines__a="3")
    assert said(pull_request, "main", "apart") == ""


def test_a_shallow_clone_says_nothing_of_what_it_lacks(pull_request, tmp_path):
    clone = Repository(tmp_path / "clone")
    for depth in ("1", "2"):
        pull_request.git("checkout", "--quiet", "landed")
        clone.git(
            "fetch", "--quiet", "--depth", depth, f"file://{pull_request.root}", "landed:at" + depth
        )
    clone.git("checkout", "--quiet", "at2")
    assert said(clone, "at2^1", "at2") == ""

"""Which configuration results are of, and which commits its checkout has no longer."""

import json
import subprocess

import pytest
from planted_nights import EXACT, MACHINE, Nights, git
from scratch_repository import ENVIRONMENT

from dashboards.site import build_site
from harness.cli.main import main
from harness.tracking.asv.checkout import config_of, rewritten
from harness.tracking.history import load_history


@pytest.fixture
def nights(tmp_path) -> Nights:
    """Four commits on a branch; the fifth, which is worse, on none."""
    made = Nights(tmp_path / "toy", 5, aside=(4,))
    made.plant([(EXACT, [[100, 0]] * 4 + [[130, 0]])])
    return made


def test_a_configuration_above_the_results_that_names_them_is_theirs(nights):
    config = nights.folder / "asv.conf.json"
    assert config_of(nights.results) == config.resolve()
    assert config_of(nights.results / MACHINE) is None
    config.write_text(json.dumps({"version": 1, "results_dir": "elsewhere"}))
    assert config_of(nights.results) is None
    config.write_text("{")
    assert config_of(nights.results) is None


def test_rewritten_commits_are_left_out_wherever_results_are_read(nights, tmp_path, capsys):
    gone = nights.hashes[4]
    for place in (nights.folder / "asv.conf.json", nights.results):
        found = load_history(place)
        assert found.rewritten == [gone]
        assert gone not in set(found.figures["commit"])
        assert found.problems == []
    built = build_site(nights.results, tmp_path / "site")
    assert "2 with no change shown" in built.sentence
    page = (tmp_path / "site" / "index.html").read_text()
    assert "1 measured commit is no longer in the history of a branch" in page
    assert main(["report", str(nights.results), "--between", nights.hashes[0], gone]) == 2
    assert "no longer in the history of a branch" in capsys.readouterr().err


def test_a_clone_that_cannot_tell_leaves_nothing_out(nights, tmp_path):
    subprocess.run(
        ["git", "clone", "-q", "--depth", "1", nights.folder.as_uri(), str(tmp_path / "shallow")],
        env=ENVIRONMENT,
        check=True,
        capture_output=True,
    )
    with pytest.raises(ValueError, match="git fetch --unshallow"):
        rewritten(tmp_path / "shallow", ["main"], nights.hashes)
    config = nights.folder / "asv.conf.json"
    config.write_text(json.dumps({"version": 1, "branches": ["no-such"]}))
    found = load_history(nights.results)
    assert set(found.figures["commit"]) == set(nights.hashes)
    (problem,) = found.problems
    assert "not left out" in problem
    config.write_text(json.dumps({"version": 1, "repo": "https://example.org/toy"}))
    assert load_history(nights.results).problems == []


def test_a_branch_that_git_would_take_for_an_option_is_none(nights):
    with pytest.raises(ValueError, match="there is no branch '--all'"):
        rewritten(nights.folder, ["--all"], nights.hashes)


def test_what_the_team_has_said_is_read_beside_the_configuration(nights, tmp_path):
    git(nights.folder, "update-ref", "refs/heads/main", nights.hashes[4])
    (nights.folder / "triage.toml").write_text(
        f'[[expected]]\nmetric = "*"\ncommit = "{nights.hashes[4]}"\nreason = "issue 12"\n'
    )
    built = build_site(nights.results, tmp_path / "site")
    assert "1 regression (1 of them triaged)" in built.sentence
    assert "expected: issue 12" in (tmp_path / "site" / "index.html").read_text()

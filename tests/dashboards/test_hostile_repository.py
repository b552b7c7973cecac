"""A site of results in a repository of somebody else's: it is read, and none of it is run."""

import json
import shutil
from pathlib import Path

import pytest
from hostile_repository import SUBJECTS, HostileRepository
from planted import plant
from scratch_repository import leave_git_alone

from harness.cli.main import main


@pytest.fixture(autouse=True)
def _alone(monkeypatch, tmp_path):
    leave_git_alone(monkeypatch, tmp_path)


@pytest.fixture
def archive(tmp_path) -> HostileRepository:
    """One that holds results of its own signed commits, the newest three."""
    made = HostileRepository(tmp_path)
    planted = plant(tmp_path / "planted", commits=len(SUBJECTS))
    log = (made.root / ".git" / "logs" / "HEAD").read_text().splitlines()
    signed = [line.split()[1] for line in log if "reset: moving to" in line]
    for path in (planted.results / "asv" / "box").glob("*-*.json"):
        content = json.loads(path.read_text())
        content["commit_hash"] = signed[planted.hashes.index(content["commit_hash"])]
        path.write_text(json.dumps(content))
    shutil.copytree(planted.results, made.root / "results")
    return made


def build(root: Path, site: Path) -> str:
    """Make the site by the command line; what its page of commits says."""
    assert main(["dashboard", str(root / "results"), "--output", str(site)]) == 0
    return (site / "commits.html").read_text()


def test_building_a_site_runs_nothing_of_the_repository(archive, tmp_path):
    page = build(archive.copy_to(tmp_path / "copy"), tmp_path / "site")
    assert [subject in page for subject in SUBJECTS] == [True] * 3
    assert archive.sprung() == set()


def test_another_users_repository_is_not_read(archive, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")  # git's own switch for its tests
    page = build(archive.copy_to(tmp_path / "copy"), tmp_path / "site")
    assert not any(subject in page for subject in SUBJECTS)
    assert capsys.readouterr().err == ""
    assert archive.sprung() == set()

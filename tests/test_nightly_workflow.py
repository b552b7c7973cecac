"""The nightly workflow on a simulated runner: no night is lost, however it ends."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from fake_github import FakeGitHub
from ruamel.yaml import YAML
from workflow_runner import Cancelled, Runner, Step, filled_in

from harness.tracking.asv.config import asv_results_folder

ROOT = Path(__file__).parents[1]
NIGHTLY = ROOT / ".github" / "workflows" / "nightly.yml"
COMMENTS = ROOT / ".github" / "comment-on-merges.sh"
RESULTS = asv_results_folder(ROOT / "asv.conf.json").relative_to(ROOT)
GREEN, REGRESSION, TOO_FEW = 0, 1, 3


class Nights:
    """The workflow's nights in turn; each writes a result and says what it started from."""

    def __init__(self, folder: Path) -> None:
        self._runner = Runner(folder)
        self._job = YAML(typ="safe").load(NIGHTLY.read_text())["jobs"]["nightly"]

    def night(
        self,
        run_id: int,
        status: int | None,
        *,
        attempt: int = 1,
        breaks: str = "",
        measures: bool = True,
    ) -> str:
        """One night whose gcbench ends with ``status``; None: the job is cancelled meanwhile.

        ``breaks``: the step before it during which the job is cancelled instead. Returns how the
        job ended.
        """
        self.started_from: set[str] = set()

        def run(step: Step, workspace: Path) -> bool:
            if breaks and breaks in (step.get("name"), step.get("run")):
                (workspace / RESULTS).mkdir(parents=True)  # as a restore that is cut off does
                raise Cancelled
            if step.get("id") != "nightly":
                return True
            results = workspace / RESULTS
            self.started_from = {path.name for path in results.glob("*")}
            if measures:
                results.mkdir(parents=True, exist_ok=True)
                (results / f"{run_id}.{attempt}").touch()
            if status is None:
                raise Cancelled
            return status == 0

        known = {"github.run_id": run_id, "github.run_attempt": attempt}
        return self._runner.run(self._job, run, known)


@pytest.fixture
def nights(tmp_path) -> Nights:
    return Nights(tmp_path)


def test_each_night_starts_from_all_nights_before(nights):
    assert nights.night(1, TOO_FEW) == "failure"
    assert nights.night(2, REGRESSION) == "failure"
    assert nights.started_from == {"1.1"}
    assert nights.night(3, GREEN) == "success"
    assert nights.started_from == {"1.1", "2.1"}
    nights.night(4, GREEN)
    assert nights.started_from == {"1.1", "2.1", "3.1"}


@pytest.mark.parametrize("status", [GREEN, REGRESSION, TOO_FEW])
def test_a_night_that_is_run_again_goes_on_from_its_first_attempt(nights, status):
    nights.night(1, GREEN)
    nights.night(2, status)
    nights.night(2, status, attempt=2)
    assert nights.started_from == {"1.1", "2.1"}
    nights.night(3, GREEN)
    assert nights.started_from == {"1.1", "2.1", "2.2"}


def test_an_old_night_that_is_run_again_starts_from_the_newest(nights):
    nights.night(1, REGRESSION)
    nights.night(2, GREEN)
    nights.night(1, REGRESSION, attempt=2)
    assert nights.started_from == {"1.1", "2.1"}
    nights.night(3, GREEN)
    assert nights.started_from == {"1.1", "2.1", "1.2"}


def test_a_night_that_is_cancelled_keeps_what_it_measured(nights):
    nights.night(1, GREEN)
    assert nights.night(2, None) == "cancelled"
    nights.night(3, GREEN)
    assert nights.started_from == {"1.1", "2.1"}


@pytest.mark.parametrize("step", ["make install", "restore the nights before"])
def test_a_night_that_never_began_hides_none_before_it(nights, step):
    nights.night(1, GREEN)
    nights.night(2, GREEN, breaks=step)
    nights.night(3, GREEN)
    assert nights.started_from == {"1.1"}


def test_nights_that_measured_nothing_change_nothing(nights):
    nights.night(1, TOO_FEW, measures=False)
    nights.night(2, GREEN)
    assert nights.started_from == set()
    nights.night(3, TOO_FEW, measures=False)
    nights.night(4, GREEN)
    assert nights.started_from == {"2.1"}


def test_a_cache_that_saves_itself_is_lost_where_the_job_fails(tmp_path):
    """What the simulated runner must show of the action that does both."""
    given = {"path": "kept", "key": "key-${{ github.run_id }}", "restore-keys": "key-"}
    job = {"steps": [{"uses": "actions/cache@v4", "with": given}, {"run": "measure"}]}
    runner = Runner(tmp_path)

    def night(run_id: int, succeeds: bool) -> set[str]:
        found: set[str] = set()

        def run(step: Step, workspace: Path) -> bool:
            if "run" in step:
                found.update(path.name for path in (workspace / "kept").glob("*"))
                (workspace / "kept").mkdir(exist_ok=True)
                (workspace / "kept" / str(run_id)).touch()
            return succeeds or "uses" in step

        runner.run(job, run, {"github.run_id": run_id})
        return found

    assert night(1, succeeds=True) == set()
    assert night(2, succeeds=False) == {"1"}
    assert night(3, succeeds=True) == {"1"}
    assert night(3, succeeds=True) == {"1", "3"}
    assert night(4, succeeds=True) == {"1", "3"}


def commenting(folder: Path, github: FakeGitHub, *blamed: str, text: str = "night") -> str:
    """The step that comments, after a night that blames these commits; what it printed."""
    job = YAML(typ="safe").load(NIGHTLY.read_text())["jobs"]["comment"]
    assert job["if"] == "always()", "a night that blames somebody has failed"
    step = job["steps"][-1]
    alerts = [{"commit": each, "changes": [{"is_regression": True}]} for each in blamed]
    alerts.append({"commit": "b" * 40, "changes": [{"is_regression": False}]})
    (folder / "night.json").write_text(json.dumps({"alerts": alerts}))
    (folder / "night.md").write_text(f"{text}\n")
    script = folder / ".github" / COMMENTS.name
    script.parent.mkdir(exist_ok=True)
    shutil.copy(COMMENTS, script)
    known = {"github.server_url": "https://g", "github.repository": "o/r", "github.run_id": 5}
    given = {name: filled_in(value, known) for name, value in step["env"].items()}
    given |= {"GITHUB_REPOSITORY": "o/r", "PATH": f"{github.path}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=folder,
        env=os.environ | given,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_merge_that_nights_blame_has_one_comment_with_the_newest(tmp_path):
    merge, pushed = "a" * 40, "c" * 40
    github = FakeGitHub(tmp_path / "github", {merge: 12, "b" * 40: 13})
    assert commenting(tmp_path, github, merge, pushed) == ""
    assert commenting(tmp_path, github, merge, text="the next night") == ""
    ((number, body),) = github.comments
    assert number == 12
    assert body.startswith(f"<!-- blamed by a night: {merge} -->\n")
    assert f"[A night](https://g/o/r/actions/runs/5) blames this merge, {merge}." in body
    assert body.endswith("\nthe next night\n")


def test_a_comment_that_may_not_be_written_is_said_and_ends_nothing(tmp_path):
    github = FakeGitHub(tmp_path / "github", {"a" * 40: 12})
    github.answers(refuses=True)
    assert commenting(tmp_path, github, "a" * 40).startswith("::warning title=nightly::")
    assert github.comments == []

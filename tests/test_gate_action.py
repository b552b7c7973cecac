"""The action's own steps on planted pull requests, as a runner of GitHub's calls them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fake_github import FakeGitHub
from ruamel.yaml import YAML
from scratch_repository import ENVIRONMENT, Repository
from workflow_runner import Runner, Step, filled_in

ROOT = Path(__file__).parents[1]
ENGINE = "engines/builtin/engine.py"
STEP = "    def _process(self, step: ScheduledStep, output: ModelRunnerOutput) -> StepOutput:\n"
FLAGS = (
    "--exact-only --num-requests 64 --batch-size 64 --output-lens 60 "
    "--representation list_of_lists --delivery per_request"
)


class Ended(NamedTuple):
    """How a job with the action in it ended, and what GitHub then has of it."""

    result: str
    outputs: dict[str, str]
    printed: str
    summary: str


class Job:
    """A clone with a pull request in it, and the action beside it, installed already."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._runner = folder, Runner(folder / "jobs")
        self.repository = Repository(folder / "clone")
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "engines", self.repository.root / "engines", ignore=ignored)
        self.repository.commit("engines")
        self.action = folder / "gcbench" / ".github" / "actions" / "gate"
        shutil.copytree(ROOT / ".github" / "actions" / "gate", self.action)
        self._venv(folder / "gcbench" / ".venv" / "bin")
        self.github = FakeGitHub(folder)

    def _venv(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        for name, module in (("python", ""), ("gcbench", " -m gcbench")):
            script = folder / name
            script.write_text(f'#!/bin/sh\nexec "{sys.executable}"{module} "$@"\n')
            script.chmod(0o755)

    def pull_request(self, line: str) -> None:
        """Merge a branch that has one more line in each step."""
        self.repository.git("checkout", "--quiet", "-B", "branch", "main")
        file = self.repository.root / ENGINE
        text = file.read_text()
        assert STEP in text
        file.write_text(text.replace(STEP, f"{STEP}        {line}\n"))
        self.repository.commit("planted")
        self.repository.git("checkout", "--quiet", "main")
        self.repository.git("merge", "--quiet", "--no-ff", "branch", "--message", "merge")

    def run(self, *, refuses: bool = False, **inputs: str) -> Ended:
        """The steps that have a script, but for the one that installs."""
        action: dict[str, Any] = YAML(typ="safe").load((self.action / "action.yml").read_text())
        known = {"github.sha": self.repository.git("rev-parse", "HEAD")}
        known["github.event.pull_request.number"] = "7"
        for name, given in action["inputs"].items():
            known[f"inputs.{name}"] = filled_in(inputs.get(name, given["default"]), known)
        files = {name: self._folder / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        temporary = self._folder / "temporary"
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir()
        for file in files.values():
            file.write_text("")
        self.github.answers(refuses=refuses)
        printed = ""

        def run(step: Step, workspace: Path) -> bool:
            nonlocal printed
            if "run" not in step or step["name"] == "install":
                return True
            given = {name: filled_in(value, known) for name, value in step.get("env", {}).items()}
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
                cwd=self.repository.root,
                env=os.environ
                | ENVIRONMENT
                | given
                | {name: str(path) for name, path in files.items()}
                | {
                    "GCBENCH_CACHE": str(self._folder / "cache"),
                    "GITHUB_ACTION_PATH": str(self.action),
                    "GITHUB_REPOSITORY": "o/r",
                    "PATH": f"{self.github.path}:{os.environ['PATH']}",
                    "PYTHONPATH": str(ROOT),
                    "RUNNER_TEMP": str(temporary),
                },
                capture_output=True,
                text=True,
                check=False,
            )
            printed += done.stdout
            return done.returncode == 0

        result = self._runner.run(action["runs"], run, known)
        outputs = dict(
            line.split("=", 1) for line in files["GITHUB_OUTPUT"].read_text().split("\n")[:-1]
        )
        return Ended(result, outputs, printed, files["GITHUB_STEP_SUMMARY"].read_text())


@pytest.fixture
def job(tmp_path) -> Job:
    return Job(tmp_path)


@pytest.mark.slow
@pytest.mark.landing
def test_a_loss_fails_at_its_line_and_what_repairs_it_updates_the_comment(job):
    asked = {"engine": "builtin", "flags": FLAGS, "token": "t"}
    job.pull_request("for _ in range(40): pass")
    lost = job.run(**asked)
    assert lost.result == "failure"
    assert (lost.outputs["status"], lost.outputs["verdict"]) == ("1", "worse")
    assert Path(lost.outputs["report"]).read_text() == lost.summary
    assert lost.summary.startswith("### gcbench gate: ▼ WORSE")
    line = (job.repository.root / ENGINE).read_text().split("\n").index(STEP.rstrip()) + 2  # from 1
    assert f"\n::error file={ENGINE},line={line},title=gcbench gate%3A worse::" in lost.printed
    assert job.github.comments == [(7, f"<!-- gcbench gate of builtin -->\n{lost.summary}")]
    assert not (job.repository.root / "results").exists(), "nothing is written into the checkout"

    job.repository.git("revert", "--no-edit", "-m", "1", "HEAD")
    gained = job.run(**asked)
    assert (gained.result, gained.outputs["status"]) == ("success", "0")
    assert gained.outputs["verdict"] == "better"
    assert "::error" not in gained.printed
    (comment,) = job.github.comments
    assert comment[1].endswith(gained.summary)

    job.pull_request("# Nothing that runs.")
    same = job.run(**(asked | {"token": ""}))
    assert (same.result, same.outputs["status"], same.outputs["verdict"]) == (
        "success",
        "0",
        "same",
    )
    assert "::notice title=gcbench gate%3A same::" in same.printed
    assert job.github.comments == [comment], "none without a token"


@pytest.mark.slow
def test_a_comment_that_may_not_be_written_is_no_verdict(job):
    job.pull_request("pass")
    ended = job.run(refuses=True, engine="builtin", flags=FLAGS, token="t")
    assert (ended.result, ended.outputs["verdict"]) == ("success", "same")
    assert "::warning title=gcbench gate::no comment" in ended.printed


def test_wrong_usage_fails_with_its_status_and_no_verdict(job):
    ended = job.run(engine="builtin", flags="--rounds 0", base="HEAD", token="t")
    assert ended.result == "failure"
    assert ended.outputs["status"] == "2"
    assert ended.outputs["verdict"] == "none"
    assert ended.summary == ""
    assert job.github.comments == []

"""The workflows are what GitHub takes, ask for what there is, and cannot be talked into more."""

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from check_jsonschema import main as check_jsonschema
from click import Command, Context, Option
from click.testing import CliRunner
from deep import parts
from ruamel.yaml import YAML
from scratch_repository import Repository
from workflow_runner import filled_in

from harness.cli.main import cli
from harness.machine.interpreter import VERSIONS
from harness.tracking.asv.config import asv_results_folder

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.y*ml"))
PULL_REQUEST = ROOT / ".github" / "workflows" / "pull-request.yml"
ACTION = ROOT / ".github" / "actions" / "gate" / "action.yml"
DEEP = ROOT / ".github" / "workflows" / "deep.yml"
NIGHTLY = ROOT / ".github" / "workflows" / "nightly.yml"


def complaints(path: Path) -> list[str]:
    """All that is wrong with a workflow."""
    return [*_of_the_schema(path), *_of_ours(YAML(typ="safe").load(path.read_text()))]


def _of_the_schema(path: Path) -> list[str]:
    words = ["--builtin-schema", "vendor.github-workflows", str(path)]
    done = CliRunner().invoke(check_jsonschema, words)
    return [f"schema: {done.output}"] if done.exit_code else []


def _of_ours(workflow: dict[str, Any]) -> Iterator[str]:
    if workflow.get("permissions") != {"contents": "read"}:
        yield "permissions are not just contents: read"
    # YAML reads the key `on` as true. A newer push makes a run useless; a night is never that.
    is_nightly = "schedule" in (workflow.get("on") or workflow.get(True) or {})
    if workflow.get("concurrency", {}).get("cancel-in-progress") is not (not is_nightly):
        yield "an older run goes on beside a newer one, or a night is cut off"
    for name, job in workflow["jobs"].items():
        yield from (f"{name}: {complaint}" for complaint in _of_job(job))


def _scripts(job: dict[str, Any]) -> list[str]:
    return [step["run"] for step in job["steps"] if "run" in step]


def _of_job(job: dict[str, Any]) -> Iterator[str]:
    if "permissions" in job and any(
        re.search(r"make|\.ci|gcbench", each) for each in _scripts(job)
    ):
        yield "permissions of its own beside code that others have written"
    if "timeout-minutes" not in job:
        yield "no timeout"
    steps = job["steps"]
    scripts = "\n".join(step.get("run", "") for step in steps)
    used = "\n".join([scripts, *(step.get("uses", "") for step in steps)])
    for step in steps:
        action, given = step.get("uses", ""), step.get("with", {})
        if action == "./.github/actions/gate":
            yield from _of_gcbench(["gate", *shlex.split(given.get("flags", ""))])
        elif action and not re.fullmatch(r"actions/[\w-]+(/[\w-]+)?@v\d+", action):
            yield f"{action} is not GitHub's own at a major version"
        if action.startswith("actions/checkout@"):
            if given.get("persist-credentials") is not False:
                yield "the checkout leaves its token behind"
            if re.search("gcbench nightly|actions/gate", used) and given.get("fetch-depth") != 0:
                yield "looks at a history in a clone that is not full"
    if "${{" in scripts:
        yield "an expression within a script"
    yield from _of_commands(scripts, steps, job)


def _of_commands(scripts: str, steps: list[dict[str, Any]], job: dict[str, Any]) -> Iterator[str]:
    environment = set(job.get("env", {})).union(*(step.get("env", {}) for step in steps))
    environment |= set(re.findall(r"(?:^|\s)(\w+)=", scripts))
    for variable in re.findall(r"\$\{?(\w+)", scripts):
        if variable not in environment and not variable.startswith(("GITHUB_", "RUNNER_")):
            yield f"${variable} is set nowhere"
    for line in scripts.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        for word, following in pairwise(words):
            if word == "make" and following not in make_targets():
                yield f"make has no target {following}"
        if words and words[0].startswith(".ci/") and not (ROOT / words[0]).is_file():
            yield f"there is no {words[0]}"
        if words and Path(words[0]).name == "gcbench":
            yield from _of_gcbench(words[1:])


def _of_gcbench(words: list[str]) -> Iterator[str]:
    context = Context(cli)
    command = cli.get_command(context, words[0])
    if command is None:
        yield f"gcbench has no command {words[0]}"
        return
    for word in words[1:]:
        if word.startswith("-") and word.split("=")[0] not in flags(command):
            yield f"gcbench {words[0]} has no flag {word}"


_OF_THE_NIGHT = ("cancel-in-progress: false", "--results results", "gcbench nightly", "--export")


def flags(command: Command) -> set[str]:
    options = [each for each in command.params if isinstance(each, Option)]
    return {flag for each in options for flag in (*each.opts, *each.secondary_opts)}


def make_targets() -> set[str]:
    rules = re.findall(r"^([a-z][\w -]*):(?!=)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    return set(" ".join(rules).split())


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_are_sound(path):
    assert complaints(path) == []


def test_the_action_is_one_and_asks_for_what_there_is(tmp_path):
    done = CliRunner().invoke(
        check_jsonschema, ["--builtin-schema", "vendor.github-actions", str(ACTION)]
    )
    assert done.exit_code == 0, done.output
    steps = YAML(typ="safe").load(ACTION.read_text())["runs"]["steps"]
    scripts = "\n".join(step.get("run", "") for step in steps)
    assert "${{" not in scripts
    assert list(_of_job({"timeout-minutes": 1, "steps": steps})) == []
    (gate,) = [
        line for line in scripts.replace("\\\n", " ").splitlines() if '/gcbench" gate' in line
    ]
    assert list(_of_gcbench(shlex.split(gate)[1:])) == []


@pytest.mark.parametrize("page", ["is-my-vllm-change-good.md", "gate.md"])
def test_the_workflow_that_docs_show_is_sound_and_short(page, tmp_path):
    shown = blocks(page, "yaml")[0]
    assert len(shown.splitlines()) <= 12
    path = tmp_path / "host-path.yml"
    path.write_text(shown)
    assert list(_of_the_schema(path)) == []
    (job,) = YAML(typ="safe").load(shown)["jobs"].values()
    assert "timeout-minutes" in job
    checkout, gate = job["steps"]
    assert checkout["with"] == {"fetch-depth": 0, "persist-credentials": False}
    name, _, pinned = gate["uses"].partition("@")
    assert name.endswith("/gcbench/.github/actions/gate")
    assert pinned == "COMMIT"
    assert gate.get("with", {}).keys() <= YAML(typ="safe").load(ACTION.read_text())["inputs"].keys()


def blocks(page: str, language: str) -> list[str]:
    """The blocks of a language that a page of docs shows."""
    text = (ROOT / "docs" / page).read_text()
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_a_pull_request_is_tested_and_gated():
    jobs = YAML(typ="safe").load(PULL_REQUEST.read_text())["jobs"]
    scripts = {name: [step.get("run", "") for step in job["steps"]] for name, job in jobs.items()}
    assert ".ci/run HEAD^1" in scripts["test"], "what it touches is what it has more than its base"
    (gate,) = [step for step in jobs["gate"]["steps"] if "actions/gate" in step.get("uses", "")]
    assert gate["with"]["engine"] == "builtin"
    for job in jobs.values():
        assert "continue-on-error" not in job
        assert not any("continue-on-error" in step for step in job["steps"])
    after = jobs["gate"]["steps"][jobs["gate"]["steps"].index(gate) + 1 :]
    assert [step["if"] for step in after] == ["always()"], "kept where the gate fails too"


def gates() -> dict[str, str]:
    """The script of each recipe for pull requests."""
    load = YAML(typ="safe").load
    action = load(ACTION.read_text())
    (theirs,) = [step for step in action["runs"]["steps"] if step.get("name") == "gate"]
    named = {name.upper(): given["default"] for name, given in action["inputs"].items()}
    (buildkite,) = load(blocks("gate.md", "yaml")[1])["steps"]
    (jenkins,) = re.findall(r"sh '(.*)'", blocks("gate.md", "groovy")[0])
    return {
        "action": re.sub(r"\$(BASE|HEAD)", lambda found: named[found[1]], theirs["run"]),
        "buildkite": buildkite["command"].replace("$$", "$"),
        "jenkins": jenkins,
    }


@pytest.mark.parametrize("recipe", ["buildkite", "jenkins"])
def test_other_systems_are_asked_for_what_there_is(recipe):
    (gate,) = [line for line in gates()[recipe].splitlines() if line.startswith("gcbench ")]
    words = shlex.split(gate.partition("||")[0])
    assert list(_of_gcbench(words[1:])) == []
    assert words[-2:] == ["--export", "markdown=gate.md"]


@pytest.mark.parametrize("event", ["pull_request", "merge_group"])
@pytest.mark.parametrize("recipe", ["action", "buildkite", "jenkins"])
def test_a_pull_request_is_not_blamed_for_what_others_merged(recipe, event, tmp_path):
    """The event's base.sha is from when the request was opened; GitHub merges into the newest."""
    repository = Repository(tmp_path / "repo")
    repository.commit("opened here", ours="1", others="1")
    repository.git("tag", "stale")
    repository.git("checkout", "--quiet", "-b", "branch")
    repository.commit("the request", ours="2")
    repository.git("checkout", "--quiet", "main")
    repository.commit("somebody else's", others="2")
    repository.git("merge", "--quiet", "--no-ff", "branch", "--message", "refs/pull/1/merge")
    github = {
        "github.sha": repository.git("rev-parse", "HEAD"),
        "github.event.pull_request.base.sha": repository.git("rev-parse", "stale"),
        "github.event.pull_request.head.sha": repository.git("rev-parse", "branch"),
    }
    if event == "merge_group":
        github["github.event.merge_group.base_sha"] = repository.git("rev-parse", "HEAD^1")
    if recipe != "action":  # these check the branch out as it is
        repository.git("update-ref", "refs/remotes/origin/main", "HEAD^1")
        repository.git("update-ref", "FETCH_HEAD", "HEAD^1")
        repository.git("checkout", "--quiet", "branch")
    script = filled_in(gates()[recipe], github)
    words = re.search(r'gcbench"? gate (.*?) --(?:exact-only|repo)', script)[1]
    done = subprocess.run(
        ["bash", "-euc", f"printf '%s\\n' {words}"],
        cwd=repository.root,
        env=os.environ | {"CHANGE_TARGET": "main"},
        capture_output=True,
        text=True,
        check=True,
    )
    base, head = done.stdout.split()
    assert repository.git("diff", "--name-only", base, head) == "ours.py"


def test_pull_requests_are_tested_on_every_python_that_is_claimed():
    jobs = YAML(typ="safe").load(PULL_REQUEST.read_text())["jobs"]
    (own,) = [
        step["with"]["python-version"]
        for step in jobs["test"]["steps"]
        if step.get("uses", "").startswith("actions/setup-python")
    ]
    tested = [own, *jobs["python"]["strategy"]["matrix"]["python"]]
    assert tested == [".".join(map(str, version)) for version in VERSIONS]
    assert jobs["python"]["strategy"]["fail-fast"] is False
    assert "make test" in [step.get("run") for step in jobs["python"]["steps"]]


def test_every_night_tests_all_there_is_in_jobs_side_by_side():
    (job,) = YAML(typ="safe").load(DEEP.read_text())["jobs"].values()
    assert job["strategy"] == {"fail-fast": False, "matrix": {"part": [*parts()]}}
    (python,) = [
        step["with"]["python-version"].split()
        for step in job["steps"]
        if step.get("uses", "").startswith("actions/setup-python")
    ]
    assert sorted(python) == [".".join(map(str, version)) for version in VERSIONS]


def test_every_night_is_measured_kept_and_shown():
    job = YAML(typ="safe").load(NIGHTLY.read_text())["jobs"]["nightly"]
    steps = job["steps"]
    (place,) = [n for n, step in enumerate(steps) if "gcbench nightly" in step.get("run", "")]
    words = shlex.split(steps[place]["run"])
    kept = str(asv_results_folder(ROOT / "asv.conf.json").relative_to(ROOT))
    caches = [step for step in steps if step.get("uses", "").startswith("actions/cache")]
    assert [step["with"]["path"] for step in caches] == [kept] * 2, "as restored, so saved"
    assert steps[place + 1] is caches[1], "saved before anything else can go wrong"
    assert steps[place]["timeout-minutes"] < job["timeout-minutes"], "and before time is over"
    assert [step["if"] for step in steps[place + 2 :]] == ["always()"] * 2, "shown if it fails too"
    shown = steps[-1]["with"]["path"].split()
    written = {words[words.index(flag) + 1] for flag in ("--export", "--json")}
    assert {name.removeprefix("markdown=") for name in written} < set(shown)
    assert kept in shown, "at hand where the cache is lost"


@pytest.mark.parametrize(
    ("written", "broken", "complaint"),
    [
        ("runs-on: ubuntu-24.04", "run-on: ubuntu-24.04", "schema"),
        ("if: always()", "if: [always()]", "schema"),
        ("on:\n  pull_request:", "on:\n  pull_requests:", "schema"),
        ("contents: read", "contents: write", "permissions"),
        ("cancel-in-progress: true", "cancel-in-progress: false", "older run"),
        ("timeout-minutes: 60", "continue-on-error: false", "no timeout"),
        ("flags: --allow", "flags: --alow", "gcbench gate has no flag --alow-uncovered"),
        ("fetch-depth: 0", "fetch-depth: 1", "not full"),
        ("persist-credentials: false", "persist-credentials: true", "token"),
        ("HEAD^1", "${{ github.base_ref }}", "expression within a script"),
        ("HEAD^1", '"$BASE_SHA"', "$BASE_SHA is set nowhere"),
        ("actions/setup-python@v5", "actions/setup-python@main", "major version"),
        ("actions/setup-python@v5", "somebody/setup-python@v5", "GitHub's own"),
        ("make install", "make instal", "make has no target instal"),
        (".ci/run", ".ci/runs", "there is no .ci/runs"),
        ("gcbench nightly", "gcbench nights", "gcbench has no command nights"),
        ("cancel-in-progress: false", "cancel-in-progress: true", "cut off"),
        ("--results results", "--result results", "gcbench nightly has no flag --result"),
        ("--export", "--exports", "gcbench nightly has no flag --exports"),
    ],
)
def test_a_broken_workflow_is_refused(written, broken, complaint, tmp_path):
    workflow = NIGHTLY if written in _OF_THE_NIGHT else PULL_REQUEST
    text = workflow.read_text()
    assert written in text
    path = tmp_path / workflow.name
    path.write_text(text.replace(written, broken))
    found = complaints(path)
    assert any(complaint in each for each in found), found

"""An engine of another distribution, in a repository of its own, measured by an installed wheel."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from environments import Environment, make_environment, run
from scratch_repository import Repository

ROOT = Path(__file__).parents[2]
SMALL = ["--engine", "toy", "--num-requests", "24", "--batch-size", "8", "--output-lens", "30"]
METRIC = "bytecodes_per_request_step"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def toy(tmp_path_factory) -> Repository:
    """The engine of examples/toy, of whose five commits the third makes a step dearer."""
    root = tmp_path_factory.mktemp("their") / "toy"
    repository = Repository(root)
    shutil.copytree(ROOT / "examples" / "toy", root, dirs_exist_ok=True)
    (root / ".gitignore").write_text("*.egg-info/\nbuild/\n.asv/\nenv/\nresults/\n")
    repository.commit("Begin")
    repository.git("tag", "v0.1.0")
    scheduler = root / "src" / "toy" / "scheduler.py"
    for subject in ("Say more", "Keep a snapshot", "Say yet more", "And more"):
        text = scheduler.read_text()
        if subject == "Keep a snapshot":
            plain = "[each for each in batch if each.remaining]"
            assert plain in text
            text = text.replace(plain, "[each for each in list(batch) if [each.remaining][0]]")
        scheduler.write_text(f"{text}# {subject}\n")
        repository.commit(subject)
    repository.git("tag", "v0.2.0")
    return repository


@pytest.fixture(scope="module")
def installed(wheel, toy, tmp_path_factory) -> Environment:
    made = make_environment(tmp_path_factory.mktemp("full") / "env", with_everything=True)
    made.install("--ignore-installed", str(wheel))
    built = tmp_path_factory.mktemp("copy") / "toy"  # a build leaves files in its folder
    shutil.copytree(toy.root, built, ignore=shutil.ignore_patterns(".git"))
    made.install(str(built))
    return made


def gcbench(
    installed: Environment, toy: Repository, *words: str
) -> subprocess.CompletedProcess[str]:
    return run([str(installed.folder / "bin" / "gcbench"), *words], toy.root)


def test_the_page_shows_the_example():
    page = (ROOT / "docs" / "plug-in.md").read_text()
    for name in ("src/gcbench_toy.py", "pyproject.toml"):
        assert (ROOT / "examples" / "toy" / name).read_text() in page


def test_it_is_found_looked_at_and_has_shapes_of_its_own(installed, toy):
    listed = gcbench(installed, toy, "list", "engines", "toy")
    assert "Representations: lists, one_array." in " ".join(listed.stdout.split())
    looked = gcbench(installed, toy, "doctor", "--engine", "toy", "--json", "-", "--quiet")
    findings = {each["what"]: each for each in json.loads(looked.stdout)["findings"]}
    assert (looked.returncode, findings["contract"]["level"]) == (0, "ok")
    assert findings["counts"]["detail"] == "they repeat to the digit, as it says"
    wrong = gcbench(installed, toy, "compare", *SMALL, "--representation", "tensor")
    assert (wrong.returncode, wrong.stderr) == (
        2,
        "gcbench: --representation tensor: this engine has lists, one_array; use one of them\n",
    )


def test_its_shapes_are_compared(installed, toy):
    asked = ["--rounds", "1", "--gc", "default", "--no-counting", "--heap-objects", "0"]
    done = gcbench(installed, toy, "compare", *SMALL, *asked, "--wait", "no", "--json", "-")
    cells = json.loads(done.stdout)["cells"]
    assert [cell["axes"]["representation"] for cell in cells] == ["lists", "one_array"]
    assert all(cell["samples"] for cell in cells), done.stderr


def test_a_planted_change_is_gated_and_bisected(installed, toy):
    gate = gcbench(
        installed, toy, "gate", "HEAD~4", "HEAD", *SMALL, "--exact-only", "--json", "gate.json"
    )
    assert gate.returncode == 1, gate.stderr
    result = json.loads((toy.root / "gate.json").read_text())
    assert result["not_run"] == []
    dearer = {
        (each["file"], each["function"].split(".<locals>")[0])
        for cell in result["cells"]
        for each in cell["functions"]
        if each["bytecodes"] > 0
    }
    assert dearer == {("toy/scheduler.py", "Scheduler.step")}
    bisect = gcbench(
        installed, toy, "bisect", "HEAD~4", "HEAD", *SMALL, "--metric", METRIC, "--json", "b.json"
    )
    assert bisect.returncode == 0, bisect.stderr
    found = json.loads((toy.root / "b.json").read_text())
    assert [each["subject"] for each in found["suspects"]] == ["Keep a snapshot"]
    assert found["after"] > found["before"]


def test_its_tags_are_releases(installed, toy):
    asked = [each for each in SMALL if each not in ("--engine", "toy")]
    done = gcbench(
        installed, toy, "releases", "toy", "v0.1..", *asked, "--gc", "as_is", "--json", "-"
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert list(result["release_labels"].values()) == ["v0.1.0", "v0.2.0"]
    older, newer = (cell["metrics"][METRIC]["median"] for cell in result["cells"])
    assert older < newer
    assert "toy v0.2.0 against v0.1.0" in gcbench(installed, toy, "report", "latest").stdout


def test_its_nights_name_the_commit(installed, toy, tmp_path):
    """By asv's own environments, in which nothing of gcbench is."""
    asked = ["nightly", "--commits", "HEAD~4..HEAD", "--json", str(tmp_path / "night.json")]
    command = [str(installed.folder / "bin" / "gcbench"), *asked]
    done = run(["env", f"HOME={tmp_path}", *command], toy.root)
    assert done.returncode == 1, done.stderr
    result = json.loads((tmp_path / "night.json").read_text())
    (alert,) = result["alerts"]
    assert [each["subject"] for each in alert["plausible"]] == ["Keep a snapshot"]
    assert [each["metric"] for each in alert["changes"]] == [METRIC]

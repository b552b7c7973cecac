"""Nights of real asv: what does not install, a full disk, a suspicion that is measured again."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from asv_writer import Benchmark, write_benchmarks, write_commit
from nightly_project import Project
from planted_nights import FIRST_DAY, noisy

from harness.tracking.reruns import load_reruns

pytest.importorskip("asv")
pytest.importorskip("virtualenv")
pytestmark = pytest.mark.slow

ENVIRONMENT = f"virtualenv-py{sys.version_info.major}.{sys.version_info.minor}"
ITL = Benchmark(
    "suite.track_itl",
    attributes={"unit": "s", "direction": "lower", "kind": "timing", "noise_floor": 0.02},
)


@pytest.fixture(scope="module")
def only(tmp_path_factory) -> Project:
    return Project(tmp_path_factory.mktemp("live"))


@pytest.fixture
def project(only) -> Project:
    only.restart()
    return only


def stored(project: Project, machine: str = "box") -> set[str]:
    """Commits that have results, by their first eight digits."""
    return {path.name[:8] for path in (project.results / machine).glob("*-*.json")}


@pytest.mark.parametrize(
    ("toy", "words"),
    [("raise RuntimeError('planted')\n", "RuntimeError: planted"), ("", "FileNotFoundError: ")],
    ids=["no import", "no install"],
)
def test_a_commit_that_does_not_install_is_said_and_the_others_are_measured(project, toy, words):
    first, bad, last = project.commit(), project.commit(toy=toy), project.commit()
    project.night("--commits", first)
    status, said = project.night()
    assert status == 3, said
    tried = {each.commit: each for each in project.result().measured}
    assert list(tried) == [bad, last]
    assert tried[last].reason == ""
    assert tried[bad].reason.startswith(f"no benchmark could be run: {words}")
    assert project.result().missing == []
    assert stored(project) == {first[:8], last[:8]}
    assert sorted(project.logged()) == [0, 0, 2, 2]


def test_a_second_run_at_once_is_refused_and_the_first_goes_on(project):
    commit = project.commit()
    os.mkfifo(project.log)  # holds the first benchmark until the log is read
    first = project.start()
    lock = project.output / "lock"
    while not (lock.is_file() and lock.read_text().startswith(f"process {first.pid} since ")):
        assert first.poll() is None
    status, said = project.night()
    assert (status, said.count("\n")) == (3, 1)
    assert f"is at work in {project.output}: process {first.pid} since " in said
    with project.log.open() as log:
        first.communicate()
        assert len(log.readlines()) == 2
    assert first.returncode == 3, "one point is too few, and no other sentence"
    assert project.result().missing == []
    assert stored(project) == {commit[:8]}


@pytest.fixture
def small_disk() -> Iterator[Callable[[Path], Path]]:
    """Mount a disk of 128 kB and fill it; where this user may."""
    mounted = []

    def mount(folder: Path) -> Path:
        folder.mkdir(parents=True)
        command = ["mount", "-t", "tmpfs", "-o", "size=128k", "none", str(folder)]
        try:
            subprocess.run(command, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"no disk can be mounted here: {error}")
        mounted.append(folder)
        full = folder / "full"
        with full.open("wb", buffering=0) as file:
            try:
                while file.write(bytes(1024)):
                    pass
            except OSError:
                pass
        return full

    yield mount
    for folder in mounted:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_of_results_costs_a_sentence_and_no_measurement(project, small_disk):
    commit = project.commit()
    full = small_disk(project.results)
    status, said = project.night()
    assert status == 3
    assert "Traceback" not in said
    missing = project.result().missing
    assert any("No space left" in line and "waits for the next run" in line for line in missing)
    assert stored(project) == set()
    logged = project.logged()
    assert logged == [0, 0]
    full.unlink()
    project.night()
    assert project.result().missing == []
    assert stored(project) == {commit[:8]}
    assert project.logged() == logged, "what was measured on the full disk's night is kept"


def test_a_full_disk_of_the_nights_leaves_the_judgement(project, small_disk):
    plant(project, [1.0] * 15 + [1.4] * 5)
    project.commit()
    small_disk(project.output)
    process = subprocess.run(
        [*project.command("--json", "-")],
        env=project.environment,
        cwd=project.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 1, process.stderr
    result = json.loads(process.stdout)
    assert [each["commit"] for each in result["alerts"]] == [project.hashes[15]]
    said = "\n".join(result["missing"])
    assert "What is left to measure waits for the next run" in said
    assert "no dashboard: " in said
    assert "Traceback" not in process.stderr


def plant(project: Project, costs: list[float]) -> None:
    """Commits of these costs, and a night of each as this machine would have measured it."""
    values = noisy(costs)
    write_benchmarks(project.results, [ITL])
    for number, cost in enumerate(costs):
        commit = project.commit(cost)
        write_commit(
            project.results,
            commit,
            FIRST_DAY + number,
            [(ITL, [values[number]])],
            environment=ENVIRONMENT,
        )


def test_a_slow_down_is_suspected_and_confirmed_on_its_first_night(project):
    plant(project, [1.0] * 12)
    slow = project.commit(1.3)
    status, said = project.night("--rounds", "3")
    result = project.result()
    assert (status, result.missing) == (1, []), said
    assert [each.commit for each in result.measured] == [slow]
    assert result.reruns == 1
    (alert,) = result.alerts
    (change,) = alert.changes
    assert (alert.commit, alert.last_before) == (slow, project.hashes[11])
    assert (change.certainty, change.verdict) == ("confirmed", "worse")
    assert change.ratio == pytest.approx(1.3, rel=0.02)
    (rerun,) = load_reruns(project.results)
    assert (rerun.before, rerun.after, rerun.rounds) == (project.hashes[11], slow, 3)
    # The night's own, then b a a b b a; the exact metric is in no re-run.
    assert project.logged() == [12, 12, 11, 12, 12, 11, 11, 12]
    status, _ = project.night()
    assert status == 1
    assert len(project.logged()) == 8


def test_other_hardware_begins_results_of_its_own(project):
    plant(project, [1.0] * 9)
    record = project.results / "box" / "machine.json"
    record.write_text(
        json.dumps(
            {
                "machine": "box",
                "arch": "pdp11",
                "cpu": "KB11",
                "num_cpu": "1",
                "ram": "256",
                "version": 1,
            }
        )
    )
    before = {path.name: path.read_bytes() for path in record.parent.iterdir()}
    project.commit()
    status, said = project.night()
    result = project.result()
    assert (status, result.missing) == (0, []), said
    assert result.asv_machine.startswith("box-")
    assert any("arch pdp11 → " in note for note in result.notes)
    assert stored(project, result.asv_machine) == {project.hashes[-1][:8]}
    assert {path.name: path.read_bytes() for path in record.parent.iterdir()} == before
    assert result.verdicts == {"no_change_shown": 1, "insufficient": 2}

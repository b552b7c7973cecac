"""A night killed, or its disk full, at every operation on files; two nights at once."""

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import msgspec
import psutil
import pytest
from examples import every
from planted_nights import EXACT, Nights

from harness.files import StoreError
from harness.tracking.nightly.lock import BusyError, marked, only_run
from harness.tracking.nightly.result import NightlyResult
from harness.tracking.nightly.staging import clear, land, stage, staged

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
PATH = os.pathsep.join(map(str, (ROOT, HERE, HERE.parent)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["kill", "full"])
@pytest.mark.landing
def test_wherever_a_night_ends_nothing_is_lost_or_measured_twice(tmp_path, kind):
    done = subprocess.run(
        [
            sys.executable,
            str(HERE / "interrupted_night.py"),
            kind,
            str(tmp_path / "nights"),
            str(every()),
        ],
        env=os.environ | {"PYTHONPATH": PATH, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["wrong"] == []
    assert found["interruptions"] > 40


def test_what_was_not_measured_leaves_its_reason_and_nothing_else(tmp_path):
    staging, results = tmp_path / "staging", tmp_path / "results"

    def fails(target: Path) -> str:
        (target / "results" / "box").mkdir(parents=True)
        (target / "results" / "box" / "aaaaaaaa-py3.11.json").write_text("{")
        return "it does not install"

    assert stage(staging, "a", fails) == "it does not install"
    land(staging, "results", results)
    assert not results.exists()
    assert not staged(staging, "a").exists()
    clear(staging, results)
    assert list(staging.iterdir()) == []


def test_a_commit_lands_after_what_says_how_to_read_it(tmp_path):
    done = staged(tmp_path, "a") / "results"
    (done / "box").mkdir(parents=True)
    for path in ("box/aaaaaaaa-py3.11.json", "box/machine.json", "benchmarks.json"):
        (done / path).write_text("{}")
    (tmp_path / "results" / "box" / "aaaaaaaa-py3.11.json").mkdir(parents=True)
    with pytest.raises(StoreError, match=r"aaaaaaaa-py3\.11\.json"):
        land(tmp_path, "results", tmp_path / "results")
    assert (tmp_path / "results" / "benchmarks.json").exists()
    assert (tmp_path / "results" / "box" / "machine.json").exists()
    assert staged(tmp_path, "a").exists()


HOLD = """
import sys
from pathlib import Path
from harness.tracking.nightly.lock import only_run
with only_run(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def start():
    """Start a process; what still runs at the end of a test is killed."""
    started = []

    def start(*command: str, **how) -> subprocess.Popen:
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE, **how))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_a_second_run_says_which_is_at_work_and_a_killed_one_holds_nothing(
    tmp_path, start, capsys, monkeypatch
):
    monkeypatch.setenv("HOME", str(tmp_path))
    nights = Nights(tmp_path / "toy", 3)
    nights.plant([(EXACT, [[100, 0]] * 3)])
    holder = start(
        sys.executable,
        "-c",
        HOLD,
        str(nights.output),
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": PATH},
    )
    assert holder.stdout.readline() == b"held\n"
    before = sorted(tmp_path.rglob("*"))
    assert nights.run() == 3
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "another nightly run is at work" in said
    assert f"process {holder.pid} since " in said
    assert sorted(tmp_path.rglob("*")) == before
    holder.kill()
    holder.wait()
    assert nights.run() == 0


def marked_with(folder: Path) -> list[int]:
    """The processes that a run in ``folder`` has started."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.environ().get("GCBENCH_NIGHTLY") == str(folder):
                found.append(process.pid)
    return found


def test_what_a_killed_run_has_left_running_is_ended_and_no_other(tmp_path, start):
    one, another = tmp_path / "nightly", tmp_path / "nightly-2"
    start("sleep", "600", env=marked(one))
    other = start("sleep", "600", env=marked(another))
    with only_run(one):
        assert marked_with(one) == []
        start("sleep", "600", env=marked(one))
    assert marked_with(one) == []
    assert marked_with(another) == [other.pid]


@pytest.mark.slow
def test_what_started_others_meanwhile_is_ended_with_them(tmp_path, start):
    spawner = "echo on; while :; do sleep 600 & sleep 0.01; done"
    first = start("bash", "-c", spawner, env=marked(tmp_path), stdout=subprocess.PIPE)
    assert first.stdout.readline() == b"on\n"
    with only_run(tmp_path):
        assert marked_with(tmp_path) == []


def test_a_run_holds_its_folder_alone_and_lets_it_go(tmp_path):
    with only_run(tmp_path / "a"):
        with pytest.raises(BusyError, match=f"process {os.getpid()}"), only_run(tmp_path / "a"):
            pass
        with only_run(tmp_path / "b"):
            pass
    with only_run(tmp_path / "a"):
        pass


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="--output DIR"), only_run(tmp_path / "file" / "nightly"):
        pass


FULL = """
import resource, sys
from pathlib import Path
from harness.tracking.nightly.lock import BusyError, only_run
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
with only_run(Path(sys.argv[1])):
    try:
        with only_run(Path(sys.argv[1])):
            pass
    except BusyError as said:
        print(said)
"""


def test_a_full_disk_is_locked_too(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": PATH},
    )
    assert done.returncode == 0, done.stderr
    assert "a process that has not said which it is" in done.stdout


@pytest.mark.slow
def test_a_night_that_ctrl_c_ends_looks_incomplete_wherever_it_is_read(tmp_path):
    nights = Nights(tmp_path / "toy", 3)
    nights.plant([(EXACT, [[100, 0]] * 3)])
    nights.paths[-1].unlink()
    command = [
        "nightly",
        str(nights.folder / "asv.conf.json"),
        "--machine",
        "box",
        "--json",
        str(tmp_path / "result.json"),
        "--output",
        str(nights.output),
    ]
    done = subprocess.run(
        [sys.executable, str(HERE.parent / "cli" / "interrupted_command.py"), "asv", *command],
        env=os.environ | {"PYTHONPATH": PATH, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 130, done.stderr
    assert "✗ interrupted, incomplete" in done.stdout
    for path in (tmp_path / "result.json", nights.output / "result.json"):
        result = msgspec.json.decode(path.read_bytes(), type=NightlyResult)
        assert not result.is_complete
        assert any("interrupted" in sentence for sentence in result.missing)
    assert "✗ interrupted, incomplete" in (nights.output / "night.md").read_text()
    page = (nights.output / "site" / "index.html").read_text()
    assert "Incomplete: The night was interrupted" in page
    assert (nights.output / "incomplete.txt").exists()


def test_a_night_at_its_end_takes_its_mark_away(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    nights = Nights(tmp_path / "toy", 3)
    nights.plant([(EXACT, [[100, 0]] * 3)])
    nights.output.mkdir()
    (nights.output / "incomplete.txt").write_text("A night that was killed.\n")
    assert nights.run() == 0
    assert not (nights.output / "incomplete.txt").exists()

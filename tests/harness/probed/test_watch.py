"""A watch reads on whatever happens to a ring, and says of a command that was not read why."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psutil
import pytest

from gcbench import probe
from harness.probed.run import probed_environment
from harness.probed.watch import RingWatch


@pytest.mark.parametrize(("options", "reasons"), [(["-S"], ["-S leaves out"]), ([], [])])
def test_an_interpreter_that_ended_unseen_is_given_its_own_reason(options, reasons, tmp_path):
    command = [sys.executable, *options, "-c", ""]
    environment = probed_environment(tmp_path, os.environ)
    with subprocess.Popen(command, env=environment) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # a zombie's files are empty
        watch = RingWatch(tmp_path, psutil.Process(process.pid), command)
        watch.poll()
        watch.finish()
        said = [(each.pid, each.name, each.reason[:13]) for each in watch.not_probed()]
    assert said == [(process.pid, "python -c", each) for each in reasons]


COLLECTS = """
import gc, sys
gc.disable()
for _ in range(3):
    gc.collect(1)
print(flush=True)
sys.stdin.readline()
for _ in range(4):
    gc.collect(2)
print(flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def folder(tmp_path) -> Path:
    made = tmp_path / "rings"
    made.mkdir()
    return made


@contextmanager
def collecting(folder: Path) -> Iterator["subprocess.Popen[str]"]:
    """A process that has collected three times, and will four times more after the next line."""
    environment = probed_environment(folder, {**os.environ, "PYTHONPATH": ""})
    with subprocess.Popen(
        [sys.executable, "-c", COLLECTS],
        env=environment,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        process.stdout.readline()
        yield process
        process.communicate("\n\n")


def next_line(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    process.stdout.readline()


def full(watch: RingWatch, pid: int) -> int:
    (found,) = [each.described() for each in watch.processes if each.ring.pid == pid]
    return found.generations[2].collections


@pytest.mark.parametrize("what", ["x-1.ring", "-.ring", "1-.ring", f"{'9' * 30}-1.ring"])
def test_a_file_that_is_no_ring_is_a_note(what, folder):
    (folder / what).touch()
    with collecting(folder) as process:
        watch = RingWatch(folder, psutil.Process(process.pid), process.args)
        watch.poll()
        next_line(process)
        watch.poll()
    watch.finish()
    assert full(watch, process.pid) >= 4
    assert watch.notes == [f"{folder / what} is no ring, so it was not read."]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (Path.mkdir, "cannot be read: Is a directory"),
        (lambda path: path.symlink_to("/nowhere"), "cannot be read: Too many levels"),
    ],
)
def test_a_ring_that_cannot_be_opened_is_a_note(make, says, folder):
    make(folder / "4194305-1.ring")
    with collecting(folder) as process:
        watch = RingWatch(folder, psutil.Process(process.pid), process.args)
        watch.poll()
        next_line(process)
    watch.finish()
    assert full(watch, process.pid) >= 4
    (note,) = watch.notes
    assert says in note


@pytest.mark.parametrize("make", [Path.touch, os.mkfifo])
def test_a_ring_that_is_none_inside_is_named(make, folder):
    make(folder / "4194305-1.ring")
    with collecting(folder) as process:
        watch = RingWatch(folder, psutil.Process(process.pid), process.args)
        watch.poll()
    watch.finish()
    (missed,) = watch.not_probed()
    assert (missed.pid, "another version" in missed.reason) == (4194305, True)


def test_a_ring_that_goes_wrong_is_a_note_and_the_others_are_watched_on(folder):
    with collecting(folder) as broken, collecting(folder) as process:
        watch = RingWatch(folder, psutil.Process(process.pid), process.args)
        watch.poll()
        watch.poll()
        (path,) = folder.glob(f"{broken.pid}-*.ring")
        np.memmap(path, np.int64, "r+")[probe.WRITTEN] = -1
        watch.poll()
        next_line(process)
        watch.poll()
    watch.finish()
    assert full(watch, process.pid) >= 4
    (note,) = watch.notes
    assert note.startswith(f"python -c ({broken.pid}) was watched no longer, because its ring says")


def test_rings_are_read_to_the_end_where_their_folder_is_removed(folder):
    with collecting(folder) as process:
        watch = RingWatch(folder, psutil.Process(process.pid), process.args)
        watch.poll()
        shutil.rmtree(folder)
        next_line(process)
        watch.poll()
    watch.finish()
    assert full(watch, process.pid) >= 4
    (note,) = watch.notes
    assert f"because {folder} cannot be read: No such file" in note


def test_who_had_no_ring_and_ended_at_once_is_named(folder):
    (folder / "4194305-1.24").touch()
    with collecting(folder) as process:
        watch = RingWatch(folder, psutil.Process(process.pid), process.args)
        watch.poll()
    watch.finish()
    (missed,) = watch.not_probed()
    assert missed.reason == f"no ring could be made in {folder}: Too many open files"


def test_what_ran_before_an_exec_keeps_its_name(folder, tmp_path):
    waits = "import os, sys; print(flush=True); sys.stdin.readline();"
    after = tmp_path / "after.py"
    after.write_text(waits)
    command = [
        sys.executable,
        "-c",
        f"{waits} os.execv(sys.executable, [sys.executable, {str(after)!r}])",
    ]
    environment = probed_environment(folder, {**os.environ, "PYTHONPATH": ""})
    with subprocess.Popen(
        command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        watch = RingWatch(folder, psutil.Process(process.pid), command)
        watch.poll()
        next_line(process)
        watch.poll()
        watch.look_around()
        names = [each.name for each in watch.processes]
        process.communicate("\n")
    watch.finish()
    assert names == ["python -c", "after.py"]

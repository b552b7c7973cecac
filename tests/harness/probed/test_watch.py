"""A watch reads on whatever happens to a ring, and says of a command that was not read why."""

import errno
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psutil
import pytest

from gcbench import probe
from harness.probed.long_pauses import LongPauses
from harness.probed.run import probed_environment
from harness.probed.series import CounterSeries
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
def started(folder: Path, command: list[str]) -> Iterator["subprocess.Popen[str]"]:
    """A probed program behind pipes, which has said its first line."""
    environment = probed_environment(folder, {**os.environ, "PYTHONPATH": ""})
    with subprocess.Popen(
        command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process


@contextmanager
def collecting(folder: Path) -> Iterator["subprocess.Popen[str]"]:
    """A process that has collected three times, and will four times more after the next line."""
    with started(folder, [sys.executable, "-c", COLLECTS]) as process:
        yield process
        process.communicate("\n\n")


def next_line(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    process.stdout.readline()


def full(watch: RingWatch, pid: int) -> int:
    (found,) = [each for each in watch.processes() if each.pid == pid]
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


@pytest.mark.parametrize("content", ["", "(", "(1, 2)", "[" * 9999, "(1, 2, 'x', '', 0, '', [])"])
def test_a_long_pause_that_cannot_be_read_is_a_note(content, folder):
    pauses = LongPauses()
    with collecting(folder) as process:
        root = psutil.Process(process.pid)
        watch = RingWatch(folder, root, process.args, long_pauses=pauses)
        watch.poll()
        (folder / f"{process.pid}-0.long").write_text(content)
        next_line(process)
        watch.poll()
    watch.finish()
    assert full(watch, process.pid) >= 4
    assert pauses.longest_first == []
    (note,) = watch.notes
    assert note.startswith("A long pause is not explained")


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


def test_who_had_no_ring_is_still_named_when_another_has_its_pid_and_one(folder):
    command = [sys.executable, "-c", COLLECTS]
    with started(folder, command) as process:
        (folder / f"{process.pid}-1.{errno.EMFILE}").touch()  # by who had the PID before
        watch = RingWatch(folder, psutil.Process(process.pid), command)
        watch.poll()
        process.communicate("\n\n")
    watch.finish()
    assert [each.pid for each in watch.processes()] == [process.pid]
    assert [each.pid for each in watch.not_probed()] == [process.pid]


def test_what_ran_before_an_exec_keeps_its_name(folder, tmp_path):
    waits = "import os, sys; print(flush=True); sys.stdin.readline();"
    after = tmp_path / "after.py"
    after.write_text(waits)
    command = [
        sys.executable,
        "-c",
        f"{waits} os.execv(sys.executable, [sys.executable, {str(after)!r}])",
    ]
    with started(folder, command) as process:
        watch = RingWatch(folder, psutil.Process(process.pid), command)
        watch.poll()
        next_line(process)
        watch.poll()
        watch.look_around()
        names = [each.name for each in watch.processes()]
        process.communicate("\n")
    watch.finish()
    assert names == ["python -c", "after.py"]


def run_watched(
    folder: Path, script: str, *before: str, series: CounterSeries | None = None
) -> RingWatch:
    """All that a script leaves, read at its end; it has ended well."""
    environment = probed_environment(folder, {**os.environ, "PYTHONPATH": ""})
    command = [*before, sys.executable, "-c", script]
    with subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL) as process:
        watch = RingWatch(folder, psutil.Process(process.pid), command, series=series)
        while process.poll() is None:
            watch.poll()
    watch.finish()
    assert process.returncode == 0
    return watch


def first_generation(watch: RingWatch) -> list[int]:
    return [each.generations[1].collections for each in watch.processes() if each.role == "fork"]


def test_images_of_one_process_have_counters_of_one_place_and_each_its_counts(folder):
    script = """
import gc, os, sys
gc.disable()
number = int(os.environ.get("NUMBER", 0))
for _ in range(number):
    gc.collect(1)
if number < 3:
    os.environ["NUMBER"] = str(number + 1)
    os.execv(sys.executable, sys.orig_argv)
"""
    watch = run_watched(folder, script)
    found = watch.processes()
    assert [each.generations[1].collections for each in found] == [0, 1, 2, 3]
    assert len({each.pid for each in found}) == 1
    assert [each.role for each in found] == ["command"] * 4


def test_a_fork_that_collects_nothing_has_no_ring_and_is_nobody_that_was_missed(folder):
    script = """
import os, sys
pid = os.fork()
if not pid:
    print(flush=True)
    os.read(0, 1)
    os._exit(0)
os.waitpid(pid, 0)
"""
    command = [sys.executable, "-c", script]
    with started(folder, command) as process:
        watch = RingWatch(folder, psutil.Process(process.pid), command)
        watch.poll()
        (child,) = psutil.Process(process.pid).children()
        while time.time() - child.create_time() < 1:  # it is young no longer
            watch.look_around()
        process.communicate("\n")
    watch.finish()
    assert [each.role for each in watch.processes()] == ["command"]
    assert watch.not_probed() == []


IN_NAMESPACE = ("unshare", "--pid", "--fork", "--mount-proc")
needs_namespaces = pytest.mark.skipif(
    subprocess.run([*IN_NAMESPACE, "true"], check=False, capture_output=True).returncode != 0,
    reason="this user may make no PID namespace",
)


@needs_namespaces
def test_a_process_in_a_pid_namespace_is_itself_and_not_who_has_its_number_outside(folder):
    command = [*IN_NAMESPACE, sys.executable, "-c", COLLECTS]
    with started(folder, command) as process:
        (inside,) = psutil.Process(process.pid).children()
        watch = RingWatch(folder, psutil.Process(process.pid), command)
        watch.poll()
        (found,) = watch.processes()
        process.communicate("\n\n")
    watch.finish()
    assert (found.pid, found.name, found.command[1]) == (inside.pid, "python -c", "-c")
    assert watch.not_probed() == []
    assert full(watch, inside.pid) >= 4


@needs_namespaces
def test_a_fork_of_the_same_number_in_another_namespace_writes_into_no_ring_but_its_own(folder):
    script = """
import ctypes, gc, os
gc.disable()
gc.collect(1)
assert os.getpid() == 1
assert ctypes.CDLL(None).unshare(0x20000000) == 0  # CLONE_NEWPID
pid = os.fork()
if not pid:
    assert os.getpid() == 1
    gc.collect(1)
    gc.collect(1)
    os._exit(0)
os.waitpid(pid, 0)
"""
    watch = run_watched(folder, script, *IN_NAMESPACE)
    found = watch.processes()
    assert [each.generations[1].collections for each in found] == [1, 2]


@needs_namespaces
def test_two_processes_of_one_pid_after_another_are_two(folder):
    script = """
import gc, os
gc.disable()
pids = []
for number in range(3):
    open("/proc/sys/kernel/ns_last_pid", "w").write("400")
    pid = os.fork()
    if not pid:
        for _ in range(number + 1):
            gc.collect(1)
        os._exit(0)
    os.waitpid(pid, 0)
    pids.append(pid)
assert pids == [401] * 3
"""
    watch = run_watched(folder, script, *IN_NAMESPACE)
    assert first_generation(watch) == [1, 2, 3]


def test_what_is_kept_of_hundreds_that_came_and_went_has_a_bound_and_every_count(folder):
    script = """
import gc, os
gc.disable()
for _ in range(300):
    pid = os.fork()
    if not pid:
        gc.collect(1)
        os._exit(0)
    os.waitpid(pid, 0)
"""
    series = CounterSeries()
    watch = run_watched(folder, script, series=series)
    assert list(folder.iterdir()) == []
    assert sum(each.images for each in watch.processes()) == 301
    assert sum(first_generation(watch)) == 300
    assert len(watch.processes()) <= 258
    assert len(series.now()) < 50  # though none has looked around for long


def test_an_error_that_comes_again_and_again_is_one_note_with_a_count(folder):
    def fails(*_: object) -> None:
        raise MemoryError

    with collecting(folder) as process:
        watch = RingWatch(folder, psutil.Process(process.pid), process.args, fails)
        watch.poll()
        watch.poll()
        next_line(process)
        watch.poll()
        watch.poll()
    watch.finish()
    assert full(watch, process.pid) >= 4
    (note,) = watch.notes
    assert note.startswith("Some collections could not be written, because of MemoryError() (")

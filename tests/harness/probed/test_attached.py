"""`gcbench probe --pid`: a program that runs already records, and then no more."""

import signal
import subprocess
import sys
import threading
from collections.abc import Callable

import psutil
import pytest

from harness.probed.attached import watch_attached
from harness.probed.watch import RingWatch

ATTACHES = pytest.mark.skipif(
    not hasattr(sys, "remote_exec"), reason="CPython can be attached to from 3.14 on"
)
PROGRAM = """
import gc, os, subprocess, sys, time

gc.disable()
if len(sys.argv) == 1:
    child = subprocess.Popen([sys.executable, __file__, "child"])
print("ready", flush=True)
while not gc.callbacks:
    time.sleep(0.001)
for _ in range(137 if len(sys.argv) == 1 else 41):
    gc.collect(1)
if len(sys.argv) == 1:
    if not (fork := os.fork()):
        gc.collect(2)
        os._exit(0)
    os.waitpid(fork, 0)
while gc.callbacks:
    time.sleep(0.001)
gc.collect(2)
if len(sys.argv) == 1:
    child.wait()
"""
ALL = {("command", 1): 137, ("program", 1): 41, ("fork", 2): 1}
"""Collections by role and generation; the last one of each comes when nobody watches any more."""


@pytest.fixture
def program(tmp_path):
    """Its processes wait until they are attached to, and end when they are let go."""
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE) as process:
        assert process.stdout
        for _ in range(2):
            assert process.stdout.readline() == b"ready\n"
        yield process
        assert process.wait(60) == 0


def found(watch: RingWatch) -> dict[tuple[str, int], int]:
    return {
        (process.role, each.generation): each.collections
        for process in watch.processes()
        for each in process.generations
        if each.collections
    }


@ATTACHES
def test_all_its_processes_are_watched_until_a_signal_comes_and_then_let_go(program, tmp_path):
    rings = tmp_path / "rings"
    rings.mkdir()

    def watching(root: psutil.Process, why_not: Callable[..., str]) -> RingWatch:
        return RingWatch(rings, root, ["program"], why_not=why_not)

    def look(watch: RingWatch) -> None:
        if found(watch) == ALL:
            signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

    status, watch = watch_attached(program.pid, rings, watching, look)
    assert status == -signal.SIGTERM
    assert program.wait(60) == 0, "it ends once its callbacks are gone"
    watch.finish()
    assert found(watch) == ALL
    assert not watch.notes
    assert not watch.not_probed()


@pytest.mark.parametrize(
    ("pid", "says"),
    [
        (2**22, "--pid 4194304: no such process runs"),
        pytest.param("other", "it is no CPython 3.14", marks=ATTACHES),
        pytest.param(
            "other",
            "attaching takes CPython 3.14",
            marks=pytest.mark.skipif(hasattr(sys, "remote_exec"), reason="it can be"),
        ),
    ],
)
def test_what_cannot_be_attached_to_is_a_sentence(pid, says, tmp_path):
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as other:
        with pytest.raises(ValueError, match=says):
            watch_attached(
                other.pid if pid == "other" else pid, tmp_path, RingWatch, lambda _: None
            )
        assert other.stdin
        other.stdin.close()

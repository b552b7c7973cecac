"""Processes end with the one that started them, and with nothing else of it."""

import os
import subprocess
import sys
import threading
from contextlib import suppress

import pytest
from processes import descriptors, has_ended, opened_since

from engines import tied_process

STARTS = """
import os, sys, subprocess, threading, time
from engines import tied_process
started = [tied_process.start_tied(["sh", "-c", "sleep 1000 & echo $!; wait"],
                                   stdout=subprocess.PIPE,
                                   start_new_session=sys.argv[1] == "group")]
print(started[0].pid, int(started[0].stdout.readline()), flush=True)
if not os.fork():
    time.sleep(1000)  # a copy of the parent, which lives on
time.sleep(1000)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel ties them on Linux only")
@pytest.mark.parametrize("what", ["process", "group"])
def test_one_that_is_killed_takes_them_along_though_a_fork_of_it_lives(what):
    command = [sys.executable, "-c", STARTS, what]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as parent:
        child, grandchild = map(int, parent.stdout.readline().split())
        parent.kill()
        parent.wait()
        assert has_ended(child)
        if what == "group":
            assert has_ended(grandchild)
        else:
            assert not has_ended(grandchild, 0)
        with suppress(ProcessLookupError):
            os.killpg(parent.pid, 9)  # the fork, and the child's child


def test_a_thread_that_ends_takes_nothing_along():
    started = []
    thread = threading.Thread(
        target=lambda: started.append(tied_process.start_tied(["cat"], stdin=-1))
    )
    thread.start()
    thread.join()
    (process,) = started
    assert not has_ended(process.pid, 0.1)
    process.communicate()
    assert process.returncode == 0


def test_none_of_its_descriptors_stays():
    tied_process.start_tied(["true"]).wait()
    before = descriptors()
    for _ in range(5):
        tied_process.start_tied(["true"]).wait()
    with pytest.raises(FileNotFoundError):
        tied_process.start_tied(["/nowhere/python"])
    assert not opened_since(before)

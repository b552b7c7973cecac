"""Looks at a process of an engine: what they say, and what they must not end."""

import os
import resource
import signal
import subprocess

import psutil
import pytest

from engines.process_faults import refuse_stopped
from engines.protocol import EngineDeadError


def test_one_that_is_stopped_is_named():
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        try:
            refuse_stopped("worker", process.pid)
            process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
            with pytest.raises(
                EngineDeadError, match=f"worker process .pid {process.pid}. is stop"
            ):
                refuse_stopped("worker", process.pid)
        finally:
            process.kill()


def test_a_look_that_finds_no_descriptor_ends_nothing():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, before[1]))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            psutil.Process(os.getpid()).status()
        refuse_stopped("worker", os.getpid())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_look_at_one_that_has_ended_ends_nothing():
    process = subprocess.Popen(["true"])
    process.wait()
    refuse_stopped("worker", process.pid)

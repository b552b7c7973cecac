"""A thread that has work left is not at rest, even where it gets no core."""

import signal
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from engines.vllm.at_rest import is_at_rest

SCRIPT = """
import sys, threading

def answer():
    for line in sys.stdin:
        print(flush=True)
        while line.startswith("work"):
            pass

thread = threading.Thread(target=answer)
thread.start()
thread.join()
"""


@pytest.fixture
def process() -> "Iterator[subprocess.Popen[str]]":
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", SCRIPT]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        yield process
        process.kill()


def ask(process: "subprocess.Popen[str]", what: str) -> None:
    """Say it, and return when it has been heard."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{what}\n")
    process.stdin.flush()
    process.stdout.readline()


def test_one_that_waits_to_be_told_is_at_rest(process):
    ask(process, "nothing")
    while not is_at_rest([process.pid]):
        assert process.poll() is None


def test_one_that_wants_a_core_is_not(process):
    ask(process, "nothing")
    # Until the main thread sleeps the other one may wait for the interpreter and not for a core.
    while psutil.Process(process.pid).status() != psutil.STATUS_SLEEPING:
        assert process.poll() is None
    ask(process, "work")
    assert not any(is_at_rest([process.pid]) for _ in range(20))


def test_one_that_is_stopped_is_not(process):
    ask(process, "nothing")
    process.send_signal(signal.SIGSTOP)
    while psutil.Process(process.pid).status() != psutil.STATUS_STOPPED:
        assert process.poll() is None
    assert not is_at_rest([process.pid])

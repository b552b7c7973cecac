"""A program that is asked to end does so as by Ctrl-C, and takes all that it has started along."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from processes import HEARS_CTRL_C, is_alive, until

ROOT = Path(__file__).parents[3]
ENDLESS = [
    "run",
    "--device",
    "null",
    "--num-requests",
    "1",
    "--output-lens",
    "10000000",
    "--prompt-lens",
    "3",
    "--heap-objects",
    "0",
    "--worker",
    "process",
    "--output-processing",
    "process",
]


def family(process: psutil.Process) -> list[psutil.Process]:
    """What it has started, once the trial has its two processes."""
    while len(found := process.children(recursive=True)) < 3:
        assert is_alive(process)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_nothing_is_left_of_a_program_that_is_asked_to_end(tmp_path, number):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with subprocess.Popen(
        [sys.executable, "-m", "harness", *ENDLESS, "--output", str(tmp_path / "runs")],
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(scratch)},
        text=True,
        **HEARS_CTRL_C,
    ) as program:
        started = family(psutil.Process(program.pid))
        program.send_signal(number)
        said = program.stderr.read()
    until(lambda: not any(map(is_alive, started)))  # the kernel's signal may come a moment later
    if number == signal.SIGKILL:
        assert program.returncode == -number
    else:
        assert (program.returncode, said.strip()) == (130, "interrupted")
        assert not list(scratch.iterdir())

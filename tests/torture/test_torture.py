"""A few attempts to break gcbench at each commit, more in the slow tests, all by `make torture`."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from examples import attempts, every

HERE = Path(__file__).parent
FIXED_SEED = 7


def torture(*arguments: object) -> None:
    command = [sys.executable, str(HERE), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
def test_some_command_lines_hold():
    torture("lines", "--attempts", 16, "--seed", FIXED_SEED)


def hold(part: str, full: int) -> None:
    """By the full profile ``full`` attempts, each day others.

    By any other the same ones each time: what fails says something of the change it was run for.
    """
    seed = FIXED_SEED if every() > 1 else int(time.time()) // 86_400
    torture(part, "--attempts", attempts(full), "--seed", seed)


@pytest.mark.slow
def test_many_command_lines_hold():
    hold("lines", 500)

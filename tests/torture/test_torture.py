"""A few attempts to break gcbench at each commit, more in the slow tests, all by `make torture`."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from examples import attempts

HERE = Path(__file__).parent
FIXED_SEED = 7


def torture(*arguments: object) -> None:
    command = [sys.executable, str(HERE), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
def test_some_command_lines_hold():
    torture("lines", "--attempts", 16, "--seed", FIXED_SEED)


def hold_today(part: str, full: int) -> None:
    """Of each day other attempts, ``full`` of them by the full profile."""
    torture(part, "--attempts", attempts(full), "--seed", int(time.time()) // 86_400)


@pytest.mark.slow
def test_the_command_lines_of_this_day_hold():
    hold_today("lines", 500)

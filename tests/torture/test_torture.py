"""A few attempts to break gcbench at each commit, more in the slow tests, all by `make torture`."""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FIXED_SEED = 7


def torture(*arguments: object) -> None:
    command = [sys.executable, str(HERE), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.landing
def test_some_command_lines_hold():
    torture("lines", "--attempts", 16, "--seed", FIXED_SEED)

"""Hundreds of trials in one process of the harness leave it as they found it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROUNDS = 3
"""Of five trials each; docs/reliability.md has 40 of them."""
MOST_GROWTH = 1 << 20
"""Bytes that the last rounds may add, which is what one small object a trial would not reach."""


@pytest.mark.slow
def test_trials_leave_no_descriptor_process_segment_file_or_memory(tmp_path):
    done = subprocess.run(
        [sys.executable, str(HERE / "many_trials.py"), str(ROUNDS), str(tmp_path)],
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join((os.environ["PYTHONPATH"], str(HERE.parent)))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first, *others = json.loads(done.stdout)
    memory = [each.pop("resident_bytes") for each in (first, *others)]
    assert others == [first] * (ROUNDS - 1)
    assert first["children"] == first["files"] == 0
    assert memory[-1] - memory[0] < MOST_GROWTH

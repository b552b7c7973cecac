"""Mode cadence where the count of young objects cannot be followed."""

import subprocess
import sys

PROGRAM = """
import gc
from types import SimpleNamespace

import numpy as np

from harness.trial.cadence import CadenceWatch
from harness.trial.watch import Extent

gc.disable()
old = [[] for _ in range(1 << 18)]
watch = CadenceWatch(SimpleNamespace(step=lambda: old.clear()), Extent(1))
watch.window_opens()
watch.step()
watch.steps_end()
try:
    watch.results(np.ones(1, np.int64))
except ValueError as error:
    print(error)
"""


def test_more_objects_freed_than_it_can_count_down_are_refused():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert "cannot be followed" in done.stdout

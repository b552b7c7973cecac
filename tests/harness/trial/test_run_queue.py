"""What others take of a core is known, and what a thread sleeps is not taken for it."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from small import CELL, schedule, trial

from harness.trial import run_queue
from harness.trial.run import run_trial
from harness.trial.run_queue import RunQueue

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux counts it")
SPIN = "print(flush=True)\nwhile True: pass"


@pytest.fixture
def rival() -> Iterator[None]:
    """Another program that never rests, on the core that this thread is held to."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)})
    spinning = subprocess.Popen([sys.executable, "-c", SPIN], stdout=subprocess.PIPE)
    assert spinning.stdout is not None
    spinning.stdout.readline()
    yield
    spinning.kill()
    spinning.communicate()
    os.sched_setaffinity(0, allowed)


@pytest.mark.usefixtures("rival")
def test_what_is_neither_work_nor_sleep_is_waiting() -> None:
    """In one of some windows: in any, a virtual machine's host may take the core."""
    windows = []
    with RunQueue() as queue:
        for _ in range(20):
            waited, wall, cpu = queue.waited_ns(), time.perf_counter_ns(), time.thread_time_ns()
            while (found := queue.waited_ns() - waited) < 20_000_000:
                pass
            lost = time.perf_counter_ns() - wall - (time.thread_time_ns() - cpu)
            windows.append((found, lost))
            if found == pytest.approx(lost, rel=0.2):
                return
    pytest.fail(f"waited and lost: {windows}")


def test_another_thread_and_a_sleep_are_not_counted() -> None:
    """Of what is no work: a busy machine may let this thread wait for as long as it likes."""
    with RunQueue() as queue:
        asleep = threading.Thread(target=time.sleep, args=(0.05,))
        waited, wall, cpu = queue.waited_ns(), time.perf_counter_ns(), time.thread_time_ns()
        asleep.start()
        time.sleep(0.05)
        asleep.join()
        found = queue.waited_ns() - waited
        lost = time.perf_counter_ns() - wall - (time.thread_time_ns() - cpu)
    assert found < lost - 45_000_000


def test_a_system_that_does_not_tell_says_nothing(monkeypatch, tmp_path) -> None:
    for path in (tmp_path / "none", tmp_path / "empty"):
        monkeypatch.setattr(run_queue, "PATH", str(path))
        with RunQueue() as queue:
            assert queue.waited_ns() == 0
        (tmp_path / "empty").touch()


@pytest.mark.slow
@pytest.mark.usefixtures("rival")
def test_a_trial_does_not_charge_the_engine_with_it(tmp_path) -> None:
    rows_path = str(tmp_path / "rows.npz")
    asked = trial(schedule([3000] * 8), tmp_path, CELL, rows_path=rows_path, is_exact=True)
    result = run_trial(asked, lambda word: None)
    import numpy as np

    with np.load(tmp_path / "rows.npz") as rows:
        waited = rows["steps.waited_ns"].sum()
        length = (rows["steps.process"] - rows["steps.start"]).sum()
    assert waited > 0
    host = result.metrics["host_time_per_step"]
    assert host is not None
    assert host * result.metrics["num_steps"] < (length - 0.8 * waited) / 1e9

"""Nights of real asv, killed at random moments: all that is kept is whole, once, and enough."""

import random
import subprocess
from contextlib import suppress
from time import perf_counter

import psutil
import pytest
from examples import attempts
from nightly_project import Project
from processes import until

from harness.tracking.history import load_history

pytest.importorskip("asv")
pytest.importorskip("virtualenv")

MOST_KILLS, SEED = 20, 7


def seconds_of(project: Project) -> float:
    """How long a night that is let alone takes now."""
    began = perf_counter()
    status, said = project.night()
    assert status in (0, 3), said
    return perf_counter() - began


def killed(process: subprocess.Popen[str], after_seconds: float) -> bool:
    """Kill the process alone, as the kernel does; False where it came to its end before that."""
    try:
        said, _ = process.communicate(timeout=after_seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return True
    assert process.returncode in (0, 3), said
    return False


def killed_once_one_is_kept(project: Project) -> bool:
    """Kill it when a commit has been kept, whenever that is, and another waits."""
    marks = project.output / "staging" / "commits"
    before, process = set(marks.glob("*.done")), project.start()
    until(lambda: set(marks.glob("*.done")) - before or process.poll() is not None)
    return killed(process, 0)


def still_running(project: Project) -> list[int]:
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.environ().get("GCBENCH_NIGHTLY") == str(project.output):
                found.append(process.pid)
    return found


@pytest.mark.slow
def test_killed_at_many_moments_nothing_is_lost_or_measured_twice(tmp_path):
    project, random_ = Project(tmp_path), random.Random(SEED)
    project.commit()
    seconds_of(project)  # makes asv's environment
    project.commit()
    seconds = {1: seconds_of(project), 0: seconds_of(project)}
    each = max(seconds[1] - seconds[0], 0.1)
    measured, kills, stages, in_vain = project.kept(), 0, set(), 0
    while kills < attempts(MOST_KILLS):
        if in_vain == 4:  # the machine has become slower since
            seconds[0] *= 2
            each, in_vain = 2 * each, 0
        if len(measured) == len(project.hashes):
            for _ in range(random_.randint(1, 3) if kills else 3):
                project.commit()
        waiting = len(project.hashes) - len(measured)
        logged = len(project.logged())
        if kills < 2:  # before it has kept any, and after it has
            kills += killed_once_one_is_kept(project) if kills else killed(project.start(), 0)
        else:
            delay = random_.uniform(0, seconds[0] + each * waiting)
            kills += killed(project.start(), delay)
        now = project.kept()
        assert measured <= now, "what was kept is lost"
        again = measured & set(project.logged()[logged:])
        assert not again, f"measured once more: {again}"
        stages.add(len(now - measured))
        in_vain = 0 if now - measured else in_vain + 1
        measured = now
    assert min(stages) == 0 < max(stages), "all kills fell into one part of a night"
    assert project.night()[0] in (0, 3)
    assert project.kept() == set(range(len(project.hashes)))
    assert project.result().missing == []
    assert set(load_history(project.results).figures["commit"]) == set(project.hashes)
    assert list((project.output / "staging" / "commits").iterdir()) == []
    assert still_running(project) == []
    logged = len(project.logged())
    project.night()
    assert len(project.logged()) == logged, "a night without news measures nothing"

"""The machine as it is now: who else works on it, how well it keeps time, what it has left."""

import os
import sys
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryFile

import numpy as np
import psutil

import harness.machine.describe as machine
from harness.machine.doctor.finding import DoctorFinding
from harness.machine.other_work import read_counters, since

HEAP_OBJECTS = 700_000
_TIMER_WAITS = 662
"""The fewest from which a 99th percentile is stated; docs/metrics.md."""


def cores() -> DoctorFinding:
    """Cores this process may use, by affinity and by quota."""
    usable, quota = machine.cores_usable(), machine.cpu_quota()
    detail = f"{usable} usable" + (f", quota {quota:g}" if quota is not None else "")
    if quota is not None and quota < usable:
        return DoctorFinding(
            "warn",
            "cores",
            f"{detail}: the kernel stops this group when its share is used up",
            "raise the quota, or pin the container to whole cores",
        )
    if usable < 2:
        return DoctorFinding(
            "warn",
            "cores",
            f"{detail}: everything else runs on the core that is measured",
            "use a machine with two cores or more",
        )
    return DoctorFinding("ok", "cores", detail)


def other_work(at_least_seconds: float = 1.0) -> DoctorFinding:
    """What other programs and other guests do now, by the rules of each measurement."""
    seen = since(read_counters(), at_least_seconds)
    detail = (
        f"others take {seen.others:.1f} of {seen.cores} cores, {100 * seen.stolen:.1f} % is stolen"
    )
    if seen.is_busy:
        advice = "stop what else runs, or measure with --wait 10m or more rounds"
        return DoctorFinding("warn", "other work", detail, advice)
    return DoctorFinding("ok", "other work", detail)


def other_trials() -> DoctorFinding:
    """Whether another gcbench measures on this machine."""
    own = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    others = [
        process.pid
        for process in psutil.process_iter(["cmdline"])
        if process.pid not in own and is_gcbench(process.info["cmdline"] or [])
    ]
    if not others:
        return DoctorFinding("ok", "other trials", "none")
    pids = ", ".join(map(str, others))
    return DoctorFinding(
        "bad", "other trials", f"gcbench runs as process {pids}", "wait for it to end"
    )


def is_gcbench(command: Sequence[str]) -> bool:
    """Whether a command line is Python running gcbench (`gcbench …`, `python -m gcbench …`)."""
    if not command or "python" not in Path(command[0]).name:
        return False
    module = any(pair in (("-m", "harness"), ("-m", "gcbench")) for pair in pairwise(command))
    return module or any(Path(word).name == "gcbench" for word in command[1:3])


def timer() -> DoctorFinding:
    """How late the end of a 1 ms sleep comes: what a modelled device must make up by spinning."""
    late = oversleep_seconds(_TIMER_WAITS)
    median, p99 = np.percentile(late, (50, 99)) * 1e3
    detail = f"a 1 ms wait ends {median:.3f} ms late (median), {p99:.3f} ms (p99)"
    if p99 > 1:
        return DoctorFinding(
            "warn", "timer", detail, "expect invalid trials on the modelled device"
        )
    return DoctorFinding("ok", "timer", detail)


def oversleep_seconds(waits: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Seconds by which each of ``waits`` sleeps to a deadline 1 ms ahead overran it; float64."""
    late = np.empty(waits, dtype=np.float64)
    for wait in range(waits):
        deadline = time.perf_counter() + 1e-3
        time.sleep(max(0.0, deadline - time.perf_counter()))
        late[wait] = time.perf_counter() - deadline
    return late


def governor() -> DoctorFinding:
    """Whether the clock frequency follows the load."""
    name = machine.frequency_governor()
    if not name:
        return DoctorFinding("ok", "governor", "not readable, as in most virtual machines")
    if name == "performance":
        return DoctorFinding("ok", "governor", name)
    return DoctorFinding("warn", "governor", name, "cpupower frequency-set --governor performance")


def memory() -> DoctorFinding:
    """Whether a heap of 700,000 objects fits, all of them dictionaries with eight references."""
    one = sys.getsizeof(dict.fromkeys(range(8)))
    needed, available = HEAP_OBJECTS * one, psutil.virtual_memory().available
    detail = (
        f"{available / machine.GIB:.1f} GiB available; a heap of {HEAP_OBJECTS:,} objects takes "
        f"up to {needed / machine.GIB:.2f} GiB in each process"
    )
    if available < 2 * needed:
        return DoctorFinding(
            "bad", "memory", detail, "free memory, or give a smaller --heap-objects"
        )
    return DoctorFinding("ok", "memory", detail)


def swap() -> DoctorFinding:
    """Memory written out to disk: a full pass would read all of it back."""
    used = psutil.swap_memory().used
    if used:
        return DoctorFinding(
            "warn",
            "swap",
            f"{used / machine.GIB:.2f} GiB in use",
            "free memory, then swapoff -a; swapon -a",
        )
    return DoctorFinding("ok", "swap", "none in use")


def huge_pages() -> DoctorFinding:
    """The setting of transparent huge pages, to be known beside a figure."""
    setting = machine.read_text("/sys/kernel/mm/transparent_hugepage/enabled")
    chosen = setting.partition("[")[2].partition("]")[0]
    return DoctorFinding("ok", "huge pages", chosen or "not readable")


def results_folder(folder: Path) -> DoctorFinding:
    """Whether results can be written to ``folder``; makes nothing that stays."""
    whole = folder.resolve()
    existing = next(place for place in (whole, *whole.parents) if place.exists())
    try:
        with TemporaryFile(dir=existing):
            pass
    except OSError as error:
        detail = f"{existing}: {error.strerror or error}"
        return DoctorFinding("bad", "results", detail, "name another folder with --output DIR")
    return DoctorFinding("ok", "results", f"{folder} can be written to")

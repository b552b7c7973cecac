"""The interpreter: its version, its torch, and what changes its collector or slows its bytecode."""

import gc
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Mapping

from harness.machine.doctor.finding import DoctorFinding
from harness.machine.interpreter import VERSIONS, collector_differences, dotted, is_free_threaded

TORCH_VERSIONS = ((2, 11), (2, 14))

_TELLING_VARIABLES = {
    "PYTHONHASHSEED": "fixes the order of sets, so one accident of it is measured",
    "PYTHONDEVMODE": "adds checks to every allocation",
    "PYTHONMALLOC": "changes the allocator",
    "PYTHONTRACEMALLOC": "traces every allocation",
    "PYTHONOPTIMIZE": "removes assertions from the code measured",
    "PYTHONPROFILEIMPORTTIME": "writes during imports",
    "PYTHONPATH": "can replace the code measured",
    "PYTHON_GIL": "changes how threads, and with them the collector, run",
    "PYTHON_JIT": "changes how bytecode runs",
    "COVERAGE_PROCESS_START": "starts coverage in each process",
}


def python(version: tuple[int, ...] = tuple(sys.version_info[:3])) -> DoctorFinding:
    """The interpreter's version and what its collector does otherwise than another version's."""
    shown = dotted(version)
    if version[:2] not in VERSIONS:
        names = ", ".join(map(dotted, VERSIONS))
        return DoctorFinding(
            "bad",
            "Python",
            f"{shown}; gcbench is tested on {names}",
            "make an environment with one of these",
        )
    if is_free_threaded():
        return DoctorFinding(
            "warn",
            "Python",
            f"{shown}, free-threaded: its collector has no generations to tune",
            "use the build with the GIL, or compare within this build only",
        )
    return DoctorFinding("ok", "Python", f"{shown}: {collector_differences(version)}")


def torch(executable: str = sys.executable) -> DoctorFinding:
    """Whether torch can be imported, tried in an interpreter of its own, and its version."""
    script = "import torch; print(torch.__version__)"
    try:
        answer = subprocess.run(
            [executable, "-c", script], capture_output=True, text=True, timeout=120, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        return DoctorFinding(
            "bad", "torch", f"could not be tried: {error}", "check the interpreter"
        )
    if answer.returncode:
        lines = answer.stderr.strip().splitlines() or [f"exit status {answer.returncode}"]
        if lines[-1] == "ModuleNotFoundError: No module named 'torch'":
            return DoctorFinding(
                "ok", "torch", "not installed; devices with a model and the shape tensor need it"
            )
        return DoctorFinding("bad", "torch", lines[-1], "install torch into this environment")
    return torch_version(answer.stdout.strip())


def torch_version(shown: str) -> DoctorFinding:
    """Whether this version of torch is one that gcbench is made for."""
    found = tuple(int(part) for part in shown.split(".")[:2])
    oldest, newest = TORCH_VERSIONS
    if oldest <= found <= newest:
        return DoctorFinding("ok", "torch", shown)
    return DoctorFinding(
        "bad",
        "torch",
        f"{shown}, supported are 2.{oldest[1]} to 2.{newest[1]}",
        "install a version in that range",
    )


def environment(variables: Mapping[str, str] = os.environ) -> DoctorFinding:
    """Variables that change the collector, hashing, allocation or the code that is measured."""
    found = [name for name in _TELLING_VARIABLES if variables.get(name)]
    if not found:
        return DoctorFinding("ok", "environment", "no variable that changes the interpreter")
    detail = "; ".join(f"{name}={variables[name]} {_TELLING_VARIABLES[name]}" for name in found)
    return DoctorFinding("warn", "environment", detail, "unset " + " ".join(found))


def collector() -> DoctorFinding:
    """The collector at start: on, at its defaults, nothing frozen, nobody called back."""
    odd = []
    if not gc.isenabled():
        odd.append("automatic collection is off")
    if gc.get_threshold() != default_thresholds():
        odd.append(f"thresholds are {gc.get_threshold()}, not {default_thresholds()}")
    if gc.get_freeze_count():
        odd.append(f"{gc.get_freeze_count():,} objects are frozen")
    if gc.callbacks:
        odd.append(f"{len(gc.callbacks)} callbacks run at each collection")
    if not odd:
        return DoctorFinding("ok", "collector", f"on, thresholds {gc.get_threshold()}")
    return DoctorFinding(
        "warn",
        "collector",
        "; ".join(odd),
        "look for a sitecustomize or .pth file that sets it: each trial would start so",
    )


def default_thresholds() -> tuple[int, int, int]:
    """What a fresh interpreter without site customisation has, read from one."""
    script = "import gc; print(*gc.get_threshold())"
    answer = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=True
    )
    gen0, gen1, gen2 = map(int, answer.stdout.split())
    return gen0, gen1, gen2


def tracing() -> DoctorFinding:
    """A debugger, coverage, profiler or allocation tracer at work in this process."""
    active = []
    if sys.gettrace() is not None:
        active.append("a trace function (debugger or coverage)")
    if sys.getprofile() is not None:
        active.append("a profile function")
    if tracemalloc.is_tracing():
        active.append("tracemalloc")
    monitoring = getattr(sys, "monitoring", None)
    if monitoring is not None:
        active += [tool for number in range(6) if (tool := monitoring.get_tool(number))]
    if not active:
        return DoctorFinding("ok", "tracing", "nothing traces this process")
    return DoctorFinding("bad", "tracing", ", ".join(active), "run without it")

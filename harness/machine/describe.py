"""What a figure was measured on: machine, interpreter, code; never a host's or a user's name."""

import importlib.metadata
import os
import platform
from pathlib import Path

import msgspec
import psutil

from harness.machine.git import GitError, reading
from harness.machine.interpreter import is_free_threaded, this_interpreter

GIB = 1 << 30


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """A machine and an interpreter on it; "", 0 or None stands for what cannot be read.

    ``cpu_quota``: cores' worth of time that the control group grants, None without a limit.
    """

    cpu_model: str = ""
    architecture: str = ""
    cores_logical: int = 0
    cores_usable: int = 0
    cpu_quota: float | None = None
    memory_bytes: int = 0
    kernel: str = ""
    os: str = ""
    virtualization: str = ""
    governor: str = ""
    python: str = ""
    python_implementation: str = ""
    python_build: str = ""
    free_threaded: bool = False
    collector: str = ""
    torch: str = ""
    numpy: str = ""
    gcbench: str = ""
    gpus: list[str] = []


def describe() -> Machine:
    """This machine and interpreter.

    Reads version numbers from package metadata: importing torch would change the heap.
    """
    interpreter = this_interpreter()
    return Machine(
        cpu_model=_cpu_model(),
        architecture=platform.machine(),
        cores_logical=os.cpu_count() or 0,
        cores_usable=cores_usable(),
        cpu_quota=cpu_quota(),
        memory_bytes=psutil.virtual_memory().total,
        kernel=f"{platform.system()} {platform.release()}",
        os=_os_name(),
        virtualization=virtualization(),
        governor=frequency_governor(),
        python=interpreter.version,
        python_implementation=interpreter.implementation,
        python_build=interpreter.build,
        free_threaded=is_free_threaded(),
        collector=interpreter.collector,
        torch=distribution_version("torch"),
        numpy=distribution_version("numpy"),
        gcbench=distribution_version("gcbench"),
        gpus=_gpu_names(),
    )


def code_identity(root: Path) -> tuple[str, str]:
    """``root`` in full and its git commit, with "+dirty" where files differ; "" without git.

    "" too where ``root`` lies in a checkout that does not track it, as site-packages may.
    """
    root = Path(root).resolve()
    try:
        with reading(root) as git:
            commit = git("rev-parse", "HEAD")
            if not git("ls-files", "--", "."):
                return str(root), ""
            return str(root), commit + ("+dirty" if git.changed_files(".") else "")
    except GitError:
        return str(root), ""


def distribution_version(distribution: str) -> str:
    """The installed version of a distribution, "" where there is none."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


def cores_usable() -> int:
    """Logical cores this process may run on."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 0


def cpu_quota() -> float | None:
    """Cores' worth of time that the control group grants; None where it sets no limit."""
    quota, _, period = read_text("/sys/fs/cgroup/cpu.max").partition(" ")
    if not quota:
        quota = read_text("/sys/fs/cgroup/cpu/cpu.cfs_quota_us")
        period = read_text("/sys/fs/cgroup/cpu/cpu.cfs_period_us")
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() else None


def frequency_governor() -> str:
    """The frequency governor of the first core; "" where it cannot be read."""
    return read_text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")


def virtualization() -> str:
    """ "container", "virtual machine", both, or "" where nothing hints at either."""
    in_container = (
        any(Path(mark).exists() for mark in ("/.dockerenv", "/run/.containerenv"))
        or "container" in os.environ
        or any(word in read_text("/proc/1/cgroup") for word in ("docker", "kubepods", "lxc"))
    )
    in_vm = " hypervisor" in read_text("/proc/cpuinfo")
    kinds = (("container", in_container), ("virtual machine", in_vm))
    return " in a ".join(name for name, found in kinds if found)


def read_text(path: str) -> str:
    """A small system file's text, stripped; "" where it cannot be read."""
    try:
        return Path(path).read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _cpu_model() -> str:
    for line in read_text("/proc/cpuinfo").splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("model name", "Hardware", "cpu model"):
            return value.strip()
    return platform.processor() or platform.machine()


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "")
    except OSError:
        return platform.platform(terse=True)


def _gpu_names() -> list[str]:
    """Names as NVML gives them; nvidia-ml-py is used where it is there and never required."""
    try:
        import pynvml  # type: ignore[import-not-found]

        pynvml.nvmlInit()
        try:
            handles = map(pynvml.nvmlDeviceGetHandleByIndex, range(pynvml.nvmlDeviceGetCount()))
            return [str(pynvml.nvmlDeviceGetName(handle)) for handle in handles]
        finally:
            pynvml.nvmlShutdown()
    except Exception:  # no package, no driver, no GPU: all mean that none can be named
        return []

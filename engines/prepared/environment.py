"""The base: one virtual environment over which the Python files of every release run."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO

from engines.interpreter import import_path
from engines.prepared.cache import ReleaseError, only_writer, writing_release
from engines.prepared.packages import uv_install
from engines.prepared.project import Project

_CODE_ROOT = Path(__file__).parents[2]
# As pip says it: then which package from where, and the hashes.
_HASH_MISMATCH = r"DO NOT MATCH THE HASHES.*\n(\S+) from (\S+?)(?:#\S+)? "


def base_folder(project: Project) -> Path:
    """Where the base of this Python version lies or will lie."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return project.folder / f"base-{project.pinned}-py{version}"


def base_interpreter(project: Project) -> Path | None:
    """Python of the base, None unless its installation came to its end."""
    folder = base_folder(project)
    return folder / "bin" / "python" if (folder / ".complete").exists() else None


def make_base(project: Project, say: Callable[[str], None]) -> Path:
    """Install the base unless it is there; its Python.

    What pip says goes to ``<base>.log``. Raises ReleaseError, with nothing left but that log.
    """
    if found := base_interpreter(project):
        return found
    folder, log = base_folder(project), Path(f"{base_folder(project)}.log")
    with only_writer(project, say) as lock:
        if found := base_interpreter(project):
            return found
        say(f"installing the environment of {project.base}: {project.size}, minutes; log: {log}")
        with writing_release(folder.parent), log.open("w") as output:
            # Of an interrupted installation. It cannot be made elsewhere and moved here: a
            # virtual environment holds its own path.
            shutil.rmtree(folder, ignore_errors=True)
            try:
                environment = _Environment(project, folder, output, lock)
                environment.install_lock()
                project.install(environment)
                (folder / ".complete").touch()
            except BaseException:
                shutil.rmtree(folder, ignore_errors=True)
                raise
    return folder / "bin" / "python"


class _Environment:
    """A virtual environment that is being filled; an `Installer`."""

    def __init__(self, project: Project, folder: Path, log: IO[str], lock: IO[str]) -> None:
        self._project = project
        self._python = str(folder / "bin" / "python")
        self._log = log
        self._lock = lock
        # venv would keep to itself what ensurepip says.
        self._run([sys.executable, "-m", "venv", "--without-pip", str(folder)])
        self._run([self._python, "-I", "-m", "ensurepip"])

    def install_lock(self) -> None:
        """What ran together, by hash, where this Python has a lock; what it lacks comes later.

        Each of a lock's lines has hashes, so both check them; told to, uv would refuse pip's
        constraints, which have none.
        """
        lock = self._project.lock
        if lock.exists():
            self.install("--no-deps", "--requirement", str(lock))

    def install(self, *words: str) -> None:
        """By pip where there is no uv, or it fails."""
        if found := uv_install(self._python):
            command, env = found
            if self._status([*command, *words], env) == 0:
                return
        self._run([self._python, "-I", "-m", "pip", "install", *words])

    def uninstall(self, *packages: str) -> None:
        """Those of them that are there."""
        self._run([self._python, "-I", "-m", "pip", "uninstall", "--yes", *packages])

    def asked_of(self, script: str) -> list[str]:
        """The words that a script prints."""
        asked = [self._python, "-I", "-c", script]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        if done.returncode:
            why = done.stderr.strip().splitlines()[-1]
            raise ReleaseError(f"what {self._project.base} requires cannot be read: {why}")
        return done.stdout.split()

    def _status(self, command: list[str], env: dict[str, str] | None = None) -> int:
        # The lock goes with it: where this process is killed, the next one waits for pip to end.
        done = subprocess.run(
            command,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            pass_fds=(self._lock.fileno(),),
            check=False,
        )
        return done.returncode

    def _run(self, command: list[str]) -> None:
        if not (status := self._status(command)):
            return
        said = Path(self._log.name).read_text(errors="replace").splitlines()
        lines = [line.strip() for line in said]
        if found := re.search(_HASH_MISMATCH, "\n".join(lines)):
            raise ReleaseError(
                f"{found[1]} from {found[2]} does not have a hash that {self._project.lock} lists; "
                "set PIP_INDEX_URL to another index, or correct the lock"
            )
        errors = [line for line in lines if line.startswith("ERROR: ")] or [*filter(None, lines)]
        # The line before says of which package.
        errors = [line for line in errors if "ResolutionImpossible" not in line] or errors
        why = errors[-1].removeprefix("ERROR: ") if errors else f"exit status {status}"
        raise ReleaseError(
            f"installing the environment of {self._project.base} failed: {why.rstrip('.')}; pip's "
            f"output is in {self._log.name}"
        )


def check_import(project: Project, layer: Path, python: Path) -> None:
    """Import the host path of the project in ``layer`` once, in a process of its own.

    In the cache it also leaves byte code, which else each trial would compile. Raises
    ReleaseError with the missing package, or the last line of what Python said.
    """
    env = {**os.environ, **import_path(layer, _CODE_ROOT), **project.variables}
    if layer.is_relative_to(project.folder):
        env.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [str(python), "-P", "-c", project.imports],
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
    if missing and missing[1] != project.package:
        raise ReleaseError(
            f"the {project.name} in {layer} needs the package {missing[1]}, which "
            f"{python.parents[1]} lacks; add it with {python} -m pip install --no-deps {missing[1]}"
        )
    raise ReleaseError(
        f"the {project.name} in {layer} cannot be imported in {python.parents[1]}: {why.strip()}; "
        "its host path may need other versions of its dependencies"
    )

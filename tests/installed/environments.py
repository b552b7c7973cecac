"""Environments of a test's own, with a real installation and no network."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

_PYTEST = ("pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "pygments")
_SETUPTOOLS = ("setuptools", "_distutils_hack")


class Environment(NamedTuple):
    """An interpreter that finds what was installed into it and no more."""

    folder: Path

    @property
    def python(self) -> str:
        return str(self.folder / "bin" / "python")

    @property
    def site_packages(self) -> Path:
        (found,) = self.folder.glob("lib/python*/site-packages")
        return found

    def install(self, *what: str) -> None:
        """By the pip of the interpreter that runs the tests."""
        options = ("--no-deps", "--no-index", "--no-build-isolation", "--no-compile", "--quiet")
        pip = [sys.executable, "-m", "pip", "--python", str(self.folder)]
        done = run([*pip, "install", *options, *what], self.folder)
        assert done.returncode == 0, done.stderr

    def run(self, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run its interpreter in a folder."""
        return run([self.python, *arguments], cwd)


def run(command: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder, with nothing of Python's in its environment."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "PYTEST", "COV"))
    }
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


def make_environment(folder: Path, *, with_everything: bool = False) -> Environment:
    """An empty environment that has pytest and setuptools, or all that this interpreter has."""
    done = run([sys.executable, "-m", "venv", "--without-pip", str(folder)], folder.parent)
    assert done.returncode == 0, done.stderr
    environment = Environment(folder)
    if with_everything:  # a path in a .pth file brings packages, and no .pth files of their own
        theirs = [path for path in sys.path if path.endswith("site-packages")]
        (environment.site_packages / "everything.pth").write_text("\n".join(theirs))
        return environment
    for name in (*_PYTEST, *_SETUPTOOLS):
        spec = find_spec(name)
        assert spec is not None, f"the interpreter of the tests has no {name}"
        assert spec.origin is not None
        file = Path(spec.origin)
        package = file.parent if spec.submodule_search_locations else file
        for path in (package, *package.parent.glob(f"{name}-*.dist-info")):
            (environment.site_packages / path.name).symlink_to(path)
    return environment

"""What an interpreter would run with, found out without starting it."""

import platform
from pathlib import Path


def installed(interpreter: Path) -> list[str]:
    """Which Python it is, and each package of its environment with its version, in order.

    Of an interpreter without an environment of its own: where it lies and when it was written.
    """
    folder = interpreter.absolute().parents[1]
    described = folder / "pyvenv.cfg"
    real = interpreter.resolve()
    stat = real.stat()
    python = [platform.machine(), str(real), str(stat.st_size), str(stat.st_mtime_ns)]
    if described.exists():
        python += described.read_text(errors="replace").splitlines()
    packages = folder.glob("lib/python*/site-packages/*.dist-info")
    return python + sorted(package.name for package in packages)

"""What an interpreter would run with, found out without starting it."""

import json
import os
import platform
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname


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
    return python + sorted(package.name for package in _packages(interpreter))


def editable_sha256(interpreter: Path, package: str) -> str:
    """SHA-256 over the modules of those packages that are imported from their checkouts.

    Not gcbench's own, nor what lies in ``package`` of a checkout, nor in a folder whose name no
    import can say.
    """
    total = sha256()
    for root in sorted(_editable(interpreter)):
        for path in sorted(_modules(root, root / package)):
            content = path.read_bytes()
            total.update(f"{path}\0{len(content)}\0".encode() + content)
    return total.hexdigest()


def _packages(interpreter: Path) -> Iterator[Path]:
    return interpreter.absolute().parents[1].glob("lib/python*/site-packages/*.dist-info")


def _editable(interpreter: Path) -> Iterator[Path]:
    for package in _packages(interpreter):
        if package.name.partition("-")[0] == "gcbench":
            continue
        with suppress(OSError, ValueError):  # most come from an index, and say nothing
            origin = json.loads((package / "direct_url.json").read_bytes())
            if origin.get("dir_info", {}).get("editable"):
                yield Path(url2pathname(urlsplit(origin["url"]).path))


def _modules(root: Path, left_out: Path) -> Iterator[Path]:
    for at, folders, files in os.walk(root):
        folders[:] = [n for n in folders if n.isidentifier() and Path(at, n) != left_out]
        paths = (Path(at, name) for name in files if name.endswith(".py"))
        yield from (path for path in paths if path.is_file())

"""How gcbench is built: by setuptools, but for the editable install.

setuptools makes an editable install of this layout by a finder, which runs when an interpreter
starts and is asked last. In the parent folder of a clone named gcbench that is too late: that
folder has no ``__init__.py``, is a namespace package, and is taken for ``gcbench``. An ordinary
package is found before those, and runs nothing. So here an editable install is a wheel with one
file, a package ``gcbench`` whose modules are the checkout's.

Beside the package either has what starts the probe under ``gcbench probe`` where PYTHONPATH is not
read, and does nothing else: ``gcbench.pth``, and ``gcbench.start`` for Python 3.15 (PEP 829).
"""

import base64
import hashlib
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

from setuptools import build_meta

build_sdist = build_meta.build_sdist
get_requires_for_build_sdist = build_meta.get_requires_for_build_sdist
get_requires_for_build_wheel = build_meta.get_requires_for_build_wheel
prepare_metadata_for_build_wheel = build_meta.prepare_metadata_for_build_wheel

get_requires_for_build_editable = get_requires_for_build_wheel
prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel

_START_UP = {
    "gcbench.pth": (
        'import os; os.environ.get("GCBENCH_PROBE") and __import__("gcbench.probe").probe.start()\n'
    ),
    "gcbench.start": "gcbench.probe:start\n",
}

_OF_CHECKOUT = '''\
"""The checkout's gcbench."""

__path__ = [{!r}]

from gcbench.verbs import VERBS, __dir__, __getattr__
'''

_WHEEL = """\
Wheel-Version: 1.0
Generator: gcbench
Root-Is-Purelib: true
Tag: py3-none-any
"""


def build_wheel(
    wheel_directory: str,
    config_settings: dict[str, Any] | None = None,
    metadata_directory: str | None = None,
) -> str:
    """Write the wheel; its name."""
    # setuptools packs whatever an earlier build has left there, packages of another layout too.
    shutil.rmtree(Path("build", "lib"), ignore_errors=True)
    wheel: str = build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)
    path = Path(wheel_directory, wheel)
    with ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    _write(path, files | {name: text.encode() for name, text in _START_UP.items()})
    return wheel


def build_editable(
    wheel_directory: str,
    config_settings: dict[str, Any] | None = None,
    metadata_directory: str | None = None,
) -> str:
    """Write the wheel of an editable install (PEP 660); its name."""
    package = Path("gcbench").absolute()
    files = {"gcbench/__init__.py": _OF_CHECKOUT.format(str(package)), **_START_UP}
    with TemporaryDirectory() as folder:
        info = prepare_metadata_for_build_wheel(folder, config_settings)
        for path in sorted(Path(folder, info).rglob("*")):
            if path.is_file() and path.name != "RECORD":
                files[path.relative_to(folder).as_posix()] = path.read_text(encoding="utf-8")
    files[f"{info}/WHEEL"] = _WHEEL
    wheel = f"{info.removesuffix('.dist-info')}-py3-none-any.whl"
    _write(Path(wheel_directory, wheel), {name: text.encode() for name, text in files.items()})
    return wheel


def _write(wheel: Path, files: dict[str, bytes]) -> None:
    """Write a wheel anew, with a record of what is in it; one that was there is left out."""
    (info,) = {name.split("/")[0] for name in files if name.endswith(".dist-info/WHEEL")}
    record = f"{info}/RECORD"
    files = {name: content for name, content in files.items() if name != record}
    listed = "".join(
        f"{name},sha256={_digest(content)},{len(content)}\n" for name, content in files.items()
    )
    with ZipFile(wheel, "w", ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        archive.writestr(record, f"{listed}{record},,\n")


def _digest(content: bytes) -> str:
    digest = hashlib.sha256(content).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()

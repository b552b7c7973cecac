"""vLLM by release or by checkout: a folder to put first on the path of the base."""

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from engines.release_names import is_version
from engines.vllm.cache import ReleaseError, only_writer, vllm_folder, writing_release
from engines.vllm.environment import base_folder, base_interpreter, check_import, make_base
from engines.vllm.package_index import download, known_versions
from engines.vllm.unpack import unpack_archive
from engines.vllm.versions import OLDEST_RELEASE, PINNED, check_version, within

__all__ = [
    "OLDEST_RELEASE",
    "PINNED",
    "ReleaseError",
    "base_interpreter",
    "check_version",
    "known_versions",
    "layer",
    "make_base",
    "own_label",
    "prepare_release",
    "within",
]


def layer(release: str) -> Path:
    """The folder that holds ``vllm`` of a prepared version, or of a path; no network.

    Raises ReleaseError where the version is not prepared or the path holds no vLLM.
    """
    if not is_version(release) and (folder := _checkout(release)):
        return folder
    folder = vllm_folder() / check_version(release)
    if not _marker(folder).exists() or base_interpreter() is None:
        raise ReleaseError(
            f"vLLM {folder.name} is not prepared; run gcbench releases vllm {folder.name} --prepare"
        )
    return folder


def prepare_release(release: str, say: Callable[[str], None]) -> Path:
    """Make what `layer` and `base_interpreter` need and import it once; the layer.

    ``say`` gets a short sentence at each long step. Raises ReleaseError, with nothing half made.
    """
    folder = None if is_version(release) else _checkout(release)
    path_given = folder is not None
    if folder is None:
        folder = _unpacked(check_version(release), say)
    python = make_base(say)
    if path_given or not _marker(folder).exists():
        say(f"importing vLLM {own_label(release)}")
        check_import(folder, python)
    if not path_given:
        with writing_release(folder):
            _marker(folder).touch()
    return folder


def own_label(release: str) -> str:
    """What it calls itself: the version, or of a path what vLLM there says, else its folder."""
    folder = None if is_version(release) else _checkout(release)
    if folder is None:
        return check_version(release)
    return _own_version(folder) or folder.name


def _checkout(text: str) -> Path | None:
    """The folder if ``text`` is a path to a vLLM, None if it looks like no path at all."""
    path = Path(text).expanduser()
    if (path / "vllm" / "__init__.py").is_file():
        return path.resolve()
    if path.exists() or os.sep in text:
        raise ReleaseError(
            f"{path} holds no vllm/__init__.py; give the top folder of a vLLM checkout"
        )
    return None


def _unpacked(version: str, say: Callable[[str], None]) -> Path:
    folder = vllm_folder() / version
    if folder.exists():
        return folder
    with only_writer(say), writing_release(folder.parent):
        if folder.exists():
            return folder
        partial = folder.parent / f".{version}.partial"
        shutil.rmtree(partial, ignore_errors=True)
        try:
            partial.mkdir()
            unpack_archive(download(version, partial, say), version, partial / "layer")
            (partial / "layer").rename(folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return folder


def _marker(folder: Path) -> Path:
    """Its presence says that this release was imported in the base of this Python."""
    return folder / f".checked-{base_folder().name}"


def _own_version(folder: Path) -> str | None:
    path = folder / "vllm" / "_version.py"
    text = path.read_text(errors="replace") if path.exists() else ""
    found = re.search(r"^(?:__version__|version)\b[^\n]*=\s*['\"]([^'\"]+)['\"]", text, re.M)
    return found[1] if found else None

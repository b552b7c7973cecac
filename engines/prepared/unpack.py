"""From a release's archive to a folder that Python imports it from."""

import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from gzip import BadGzipFile
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

from engines.prepared.cache import ReleaseError
from engines.prepared.project import Project

_DAMAGE = (EOFError, zlib.error, BadGzipFile, tarfile.TarError, zipfile.BadZipFile)


class _Member(NamedTuple):
    path: PurePosixPath
    content: IO[bytes]


def unpack_archive(project: Project, archive: Path, version: str, folder: Path) -> None:
    """Write the files of an sdist or a wheel that the host path reads, and its metadata.

    They come under ``folder``. The extensions, which are for a GPU, are left out. Raises
    ReleaseError for an archive that is damaged or does not hold the project, OSError where a file
    cannot be written.
    """
    members = _of_wheel(archive) if archive.suffix == ".whl" else _of_sdist(archive)
    try:
        for member in members:
            place = _place(project, member.path, version)
            if place is not None:
                target = folder / place
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(member.content.read())
    except _DAMAGE as error:
        raise ReleaseError(
            f"{archive.name} is cut short or damaged ({error}); try again, or set PIP_INDEX_URL "
            "to another index"
        ) from None
    if project.package_in(folder) is None:
        raise ReleaseError(
            f"{archive.name} holds no {project.source}/__init__.py; set PIP_INDEX_URL to an index "
            f"that has {project.name}"
        )


def _place(project: Project, path: PurePosixPath, version: str) -> PurePosixPath | None:
    if ".." in path.parts or path.is_absolute():
        return None
    if path.suffix in project.suffixes and path.parts[0] == project.package:
        return path
    if path.name in ("PKG-INFO", "METADATA") and str(path.parent) in (
        ".",
        f"{project.package}-{version}.dist-info",
    ):
        return PurePosixPath(f"{project.package}-{version}.dist-info", "METADATA")
    return None


def _of_sdist(archive: Path) -> Iterator[_Member]:
    """Regular files only, so no link of an archive can lead out of the folder."""
    with tarfile.open(archive, "r:gz") as tar:
        for member in tar:
            content = tar.extractfile(member) if member.isreg() else None
            if content is not None:
                yield _Member(PurePosixPath(*PurePosixPath(member.name).parts[1:]), content)


def _of_wheel(archive: Path) -> Iterator[_Member]:
    with zipfile.ZipFile(archive) as wheel:
        for name in wheel.namelist():
            with wheel.open(name) as content:
                yield _Member(PurePosixPath(name), content)

"""A project's releases on the package index that pip is set to use."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.version import Version

from engines.prepared.cache import ReleaseError
from engines.prepared.package_finder import network_errors, pips_finder
from engines.prepared.project import Project
from engines.prepared.versions import check_version

if TYPE_CHECKING:
    from unearth import Link, Package, PackageFinder


def known_versions(project: Project) -> list[str]:
    """Final releases on the index, newest first, also those too old to be supported.

    Raises ReleaseError where the index cannot be reached or has none.
    """
    with pips_finder() as finder:
        return list(_files(project, finder))


def download(project: Project, version: str, folder: Path, say: Callable[[str], None]) -> Path:
    """Fetch a release's archive: its sdist, or a wheel where there is none.

    It lies in ``folder``, or where it is if the index is a local folder. Its hash is the index's.
    Raises ReleaseError for a release that is not there and for a failed download.
    """
    from unearth import HashMismatchError, UnpackError

    with pips_finder() as finder:
        files = _files(project, finder)
        link = files[check_version(project, version, list(files))].link
        said = False

        def report(link: "Link", completed: int, total: int | None) -> None:
            nonlocal said
            if not said:
                size = f" ({total / 1e6:.0f} MB)" if total else ""
                say(f"downloading {project.name} {version}{size}")
            said = True

        failures: tuple[type[Exception], ...] = UnpackError, FileNotFoundError, *network_errors()
        try:
            return finder.download(link, folder, download_reporter=report)
        except HashMismatchError:
            raise ReleaseError(
                f"{link.redacted} does not have the hash that the index gives; try again, or set "
                "PIP_INDEX_URL to another index"
            ) from None
        except failures as error:
            raise ReleaseError(
                f"downloading {project.name} {version} failed ({_first_line(error)}); check the "
                "network and try again"
            ) from None


def _files(project: Project, finder: "PackageFinder") -> dict[str, "Package"]:
    """The file to take for each final release, newest first. Raises ReleaseError for none."""
    where = ", ".join(_redacted(source["url"]) for source in finder.sources)
    files: dict[str, Package] = {}
    failures: tuple[type[Exception], ...] = ValueError, *network_errors()
    with _warnings_of_unearth() as warnings:
        try:
            packages = list(finder.find_all_packages(project.package))
        except failures as error:
            raise ReleaseError(
                f"the package index {where} cannot be read ({_first_line(error)}); check the "
                "network, or set PIP_INDEX_URL to another index"
            ) from None
    for package in packages:
        assert package.version, "only a bare URL has none"
        version = Version(package.version)
        held = files.get(str(version))
        if not version.is_prerelease and (
            held is None or (held.link.is_wheel and not package.link.is_wheel)
        ):
            files[str(version)] = package
    if not files:
        why = f" ({_first_line(warnings[-1])})" if warnings else ""
        raise ReleaseError(
            f"there is no {project.name} on the package index {where}{why}; set PIP_INDEX_URL to "
            "one that has it"
        )
    return dict(sorted(files.items(), key=lambda item: Version(item[0]), reverse=True))


@contextmanager
def _warnings_of_unearth() -> Iterator[list[str]]:
    """What it logs of sources that it leaves out, kept from standard error."""
    said: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    logger, keep = logging.getLogger("unearth"), Keep(logging.WARNING)
    propagate, logger.propagate = logger.propagate, False
    logger.addHandler(keep)
    try:
        yield said
    finally:
        logger.removeHandler(keep)
        logger.propagate = propagate


def _redacted(url: str) -> str:
    from unearth import Link

    return Link(url).redacted


def _first_line(error: object) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]

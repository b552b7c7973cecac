"""A project by release or by checkout: a folder to put first on the path of the base."""

import os
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from engines.prepared import package_index, versions
from engines.prepared.cache import ReleaseError, only_writer, writing_release
from engines.prepared.environment import base_folder, base_interpreter, check_import, make_base
from engines.prepared.project import Project
from engines.prepared.unpack import unpack_archive
from engines.release_names import is_version


class PreparedReleases:
    """The `Releases` of a project."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.PINNED = project.pinned

    def known_versions(self) -> list[str]:
        """Final releases on the index, newest first. Raises ReleaseError as the index."""
        return package_index.known_versions(self.project)

    def check_version(self, text: str, known: Sequence[str] = ()) -> str:
        """As `versions.check_version`."""
        return versions.check_version(self.project, text, known)

    def within(self, text: str, known: Sequence[str], *, last_patches: bool = False) -> list[str]:
        """As `versions.within`."""
        return versions.within(self.project, text, known, last_patches=last_patches)

    def base_folder(self) -> Path:
        """Where the base of this Python version lies or will lie."""
        return base_folder(self.project)

    def base_interpreter(self) -> Path | None:
        """Python of the base, None unless its installation came to its end."""
        return base_interpreter(self.project)

    def make_base(self, say: Callable[[str], None]) -> Path:
        """As `environment.make_base`."""
        return make_base(self.project, say)

    def layer(self, release: str) -> Path:
        """The folder that holds the package of a prepared version, or of a path; no network.

        Raises ReleaseError where the version is not prepared or the path does not hold it.
        """
        if not is_version(release) and (folder := self._checkout(release)):
            return folder
        folder = self.project.folder / self.check_version(release)
        if not self._marker(folder).exists() or self.base_interpreter() is None:
            raise ReleaseError(
                f"{self.project.name} {folder.name} is not prepared; run gcbench releases "
                f"{self.project.package} {folder.name} --prepare"
            )
        return folder

    def prepare_release(self, release: str, say: Callable[[str], None]) -> Path:
        """Make what `layer` and `base_interpreter` need and import it once; the layer.

        ``say`` gets a short sentence at each long step. Raises ReleaseError, with nothing half
        made.
        """
        folder = None if is_version(release) else self._checkout(release)
        path_given = folder is not None
        if folder is None:
            folder = self._unpacked(self.check_version(release), say)
        python = self.make_base(say)
        if path_given or not self._marker(folder).exists():
            say(f"importing {self.project.name} {self.own_label(release)}")
            check_import(self.project, folder, python)
        if not path_given:
            with writing_release(folder):
                self._marker(folder).touch()
        return folder

    def own_label(self, release: str) -> str:
        """What it calls itself: the version, or of a path what the package there says."""
        folder = None if is_version(release) else self._checkout(release)
        if folder is None:
            return self.check_version(release)
        return (
            _own_version(folder / self.project.package) or Path(release).expanduser().resolve().name
        )

    def _checkout(self, text: str) -> Path | None:
        """The folder to import from if ``text`` is a path, None if it looks like no path at all."""
        path = Path(text).expanduser()
        if found := self.project.package_in(path):
            return found.resolve()
        if path.exists() or os.sep in text:
            raise ReleaseError(
                f"{path} holds no {self.project.source}/__init__.py; give the top folder of a "
                f"{self.project.name} checkout"
            )
        return None

    def _unpacked(self, version: str, say: Callable[[str], None]) -> Path:
        folder = self.project.folder / version
        if folder.exists():
            return folder
        with only_writer(self.project, say), writing_release(folder.parent):
            if folder.exists():
                return folder
            partial = folder.parent / f".{version}.partial"
            shutil.rmtree(partial, ignore_errors=True)
            try:
                partial.mkdir()
                archive = package_index.download(self.project, version, partial, say)
                unpack_archive(self.project, archive, version, partial / "layer")
                (partial / "layer").rename(folder)
            finally:
                shutil.rmtree(partial, ignore_errors=True)
        return folder

    def _marker(self, folder: Path) -> Path:
        """Its presence says that this release was imported in the base of this Python."""
        return folder / f".checked-{self.base_folder().name}"


def _own_version(package: Path) -> str | None:
    for path in (package / "_version.py", package / "version.py"):
        text = path.read_text(errors="replace") if path.exists() else ""
        if found := re.search(
            r"^(?:__version__|version)\b[^\n]*=\s*['\"]([^'\"]+)['\"]", text, re.M
        ):
            return found[1]
    return None

"""What there is to know of a project whose releases are prepared."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from engines.cache import cache_root


class Installer(Protocol):
    """Puts packages into an environment that is being made. Raises ReleaseError."""

    def install(self, *words: str) -> None:
        """By pip's words."""
        ...

    def uninstall(self, *packages: str) -> None:
        """Those of them that are there."""
        ...

    def asked_of(self, script: str) -> list[str]:
        """The words that a script prints in the environment."""
        ...


@dataclass(frozen=True, slots=True)
class Project:
    """``name``: as people write it. ``package``: on the index, in ``import`` and in the cache.

    ``source``: the package's path in a checkout. ``pinned``: the release whose dependencies all
    others run over; ``oldest``, and ``why_oldest``; ``first``: where ``all`` begins. ``make``: the
    target of the Makefile that prepares it. ``locks``: their folder. ``install``: fills the
    environment, which takes ``size``, with what no lock brings. ``imports``: statements that
    import the host path; ``variables``: set meanwhile. ``suffixes``: of the files that it reads on
    the way.
    """

    name: str
    package: str
    source: str
    pinned: str
    oldest: str
    why_oldest: str
    first: str
    size: str
    locks: Path
    install: Callable[[Installer], None]
    imports: str
    variables: Mapping[str, str]
    suffixes: tuple[str, ...] = (".py",)

    @property
    def base(self) -> str:
        """What its environment is called: by the release whose dependencies it holds."""
        return f"{self.name} {self.pinned}"

    @property
    def lock(self) -> Path:
        """What ran together on this Python, a file of pip's requirements; it may not exist."""
        return self.locks / f"{self.pinned}-py{sys.version_info.major}.{sys.version_info.minor}.txt"

    @property
    def folder(self) -> Path:
        """The part of the cache that is for it; it may not exist yet."""
        return cache_root() / self.package

    def package_in(self, tree: Path) -> Path | None:
        """The folder to import it from, of a checkout or of what was unpacked, if it is there."""
        for source in (self.source, self.package):
            if (tree / source / "__init__.py").is_file():
                return (tree / source).parent
        return None

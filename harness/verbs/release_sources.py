"""Where the releases of an engine come from: what it says itself, or the tags of its repository."""

import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import NamedTuple, Protocol

from packaging.version import Version

from engines.cache import cache_root
from engines.protocol import EngineClass, Releases
from engines.registry import ENGINES
from engines.release_names import in_range, is_range, is_version
from harness.machine.git import described
from harness.report.release_lines import in_order
from harness.tracking.gate.trees import checkout, find_commit, take_tree
from harness.verbs.caller import Caller

Say = Callable[[str], None]


class LaidOut(NamedTuple):
    """A release that can be run: the value of ``--release``, what reports call it, and the folder
    of its files.
    """

    release: str
    label: str
    root: str


class ReleaseSource(Protocol):
    """The releases that an engine has. Whatever cannot be raises ValueError."""

    def known(self) -> list[str]:
        """All that there are."""
        ...

    def usual(self) -> str:
        """The one that is taken where none is named."""
        ...

    def within(self, text: str, *, last_patches: bool) -> list[str]:
        """Those of a range, oldest first, at least one."""
        ...

    def lay_out(self, release: str, say: Say) -> LaidOut:
        """Make ready a release, or a tree by its path."""
        ...


class OwnReleases(NamedTuple):
    """What the engine says itself."""

    engine: Releases

    def known(self) -> list[str]:
        """As the engine knows them."""
        return self.engine.known_versions()

    def usual(self) -> str:
        """The engine's choice."""
        return self.engine.PINNED

    def within(self, text: str, *, last_patches: bool) -> list[str]:
        """As the engine has it."""
        return self.engine.within(text, self.known(), last_patches=last_patches)

    def lay_out(self, release: str, say: Say) -> LaidOut:
        """Its own files, by its own name; a tree is called what git calls it, where that is."""
        root = self.engine.prepare_release(release, say)
        name = "" if is_version(release) else described(root)
        return LaidOut(release, name or self.engine.own_label(release), str(root))


class Tags(NamedTuple):
    """The tags of a repository that are versions; any other commit of it can be named, too.

    The package of each is laid out once, in the cache, by the commit's hash.
    """

    repo: Path
    package: str

    def known(self) -> list[str]:
        """Oldest first. Raises ValueError as `checkout`."""
        with checkout(self.repo) as ask:
            tags = filter(is_version, ask("tag", "--list").split())
        return sorted(tags, key=Version)

    def usual(self) -> str:
        """The newest tag. Raises ValueError where there is none."""
        if not (tags := self.known()):
            raise ValueError(
                f"{self.repo.resolve()} has no tag that is a version; name commits, or --tree PATH"
            )
        return tags[-1]

    def within(self, text: str, *, last_patches: bool) -> list[str]:
        """By version, not by ancestry."""
        found = in_range(text, self.known(), last_patches=last_patches)
        if not found:
            raise ValueError(f"{text}: {self.repo.resolve()} has no tag of a version in this range")
        return found

    def lay_out(self, release: str, say: Say) -> LaidOut:
        """A folder is a tree as it stands; all else names a commit."""
        if (tree := Path(release).expanduser()).is_dir():
            return LaidOut(release, described(tree) or release, release)
        try:
            sha = find_commit(self.repo, release, self.package)
        except ValueError as error:
            raise ValueError(f"{release} is no folder, and {error}") from None
        folder = cache_root() / "trees" / f"{sha}-{self.package.replace('/', '.')}"
        root = str((folder / self.package).parent)
        if not folder.exists():
            say(f"laying out {release}")
            partial = folder.with_name(f".{folder.name}.{os.getpid()}")
            try:
                take_tree(self.repo, sha, self.package, partial)
                partial.rename(folder)
            except OSError:  # another process was quicker
                if not folder.exists():
                    raise
            finally:
                shutil.rmtree(partial, ignore_errors=True)
        return LaidOut(root, release, root)


def release_source(engine: EngineClass, repo: Path) -> ReleaseSource:
    """Its own releases, or where it has none the tags of ``repo``."""
    own = engine.releases()
    return OwnReleases(own) if own else Tags(repo, engine.package)


def engine_named(name: str) -> str:
    """The engine of this name, or the first that runs a package of this name.

    Raises ValueError for an unknown one.
    """
    for each in ENGINES.names():
        with suppress(ValueError):  # one that is broken is not meant
            if name in (each, Path(ENGINES.load(each).package).name):
                return each
    ENGINES.check(name)
    return name


def wanted_releases(
    source: ReleaseSource, texts: Sequence[str], *, last_patches: bool
) -> list[str]:
    """The releases that are asked for; with a range among them, oldest first.

    Raises ValueError where a range is none, or holds none.
    """
    if not any(map(is_range, texts)):
        if last_patches:
            raise ValueError("--last-patches: only of a range, as in 0.10.2..0.12.0, or of all")
        return list(texts)
    ranges = (
        source.within(text, last_patches=last_patches) if is_range(text) else [text]
        for text in texts
    )
    return in_order(list(chain.from_iterable(ranges)))


def lay_out_all(
    source: ReleaseSource, wanted: Sequence[str], caller: Caller
) -> tuple[dict[str, LaidOut], dict[str, str]]:
    """The releases that can be run, and why each of the others cannot, by how they were named."""
    found: dict[str, LaidOut] = {}
    failures: dict[str, str] = {}
    with caller.working("preparing") as say:
        for release in wanted:
            try:
                found[release] = source.lay_out(release, say)
            except ValueError as error:
                failures[release] = str(error)
                caller.complain(f"left out {release}: {error}")
    return found, failures

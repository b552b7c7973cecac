"""Which releases of a project are supported."""

from bisect import bisect_left
from collections.abc import Sequence

from packaging.version import Version

from engines.prepared.cache import ReleaseError
from engines.prepared.project import Project
from engines.release_names import in_range, is_version


def check_version(project: Project, text: str, known: Sequence[str] = ()) -> str:
    """The release in the index's spelling, ``v0.11`` as ``0.11.0``; no network.

    Raises ReleaseError for what is no version, no final release, older than the oldest
    or, where ``known`` is given, not among these; the sentence names what is supported.
    """
    if not is_version(text):
        raise ReleaseError(
            f"{text!r} is neither a release of {project.name} such as {project.pinned} nor a "
            f"folder that holds {project.source}/__init__.py; {_supported(project, known)}"
        )
    version = Version(text)
    if version.is_prerelease or version.local:
        raise ReleaseError(
            f"{project.name} {text} is not a final release; check it out and give the path of its "
            f"folder ({_supported(project, known)})"
        )
    if version < Version(project.oldest):
        raise ReleaseError(
            f"{project.name} {text} is too old: {project.why_oldest}; {_supported(project, known)}"
        )
    if not known:
        padded = ".".join(map(str, (*version.release, 0, 0)[: max(3, len(version.release))]))
        return padded if version.post is None else f"{padded}.post{version.post}"
    for each in known:
        if Version(each) == version:
            return each
    raise ReleaseError(
        f"{project.name} {text} is not on the package index; did you mean "
        f"{', '.join(_nearest(project, version, known))}? "
        f"({_supported(project, known)})"
    )


def within(
    project: Project, text: str, known: Sequence[str], *, last_patches: bool = False
) -> list[str]:
    """The releases of a range among ``known``, oldest first; of ``all`` those since the first.

    As `in_range`. Raises ReleaseError where there is none, ValueError where it is no range.
    """
    found = in_range(text, known, first=project.first, last_patches=last_patches)
    if not found:
        raise ReleaseError(
            f"{text} holds no release of {project.name}; {_supported(project, known)}"
        )
    return found


def _supported(project: Project, known: Sequence[str]) -> str:
    newest = max(map(Version, known), default=None)
    if newest is None or newest < Version(project.pinned):
        return (
            f"supported are {project.oldest} to {project.pinned} and what newer ones the package "
            "index has"
        )
    return f"supported are {project.oldest} to {newest}"


def _nearest(project: Project, version: Version, known: Sequence[str]) -> list[str]:
    """Up to two releases below and two above, oldest first."""
    supported = sorted(each for each in map(Version, known) if each >= Version(project.oldest))
    at = bisect_left(supported, version)
    return [str(each) for each in supported[max(at - 2, 0) : at + 2]] or ["none"]

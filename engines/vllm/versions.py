"""Which releases of vLLM are supported."""

from bisect import bisect_left
from collections.abc import Sequence

from packaging.version import InvalidVersion, Version

from engines.vllm.cache import ReleaseError

# The release whose dependencies all others run over. Newer ones may run too; the import after
# unpacking tells.
PINNED = "0.32.0"
OLDEST_RELEASE = "0.10.2"
FIRST = "0.10.0"
"""Where ``all`` begins: the first minor version of which some release runs."""


def is_version(text: str) -> bool:
    """Whether ``text`` can be read as a version at all."""
    try:
        Version(text)
    except InvalidVersion:
        return False
    return True


def check_version(text: str, known: Sequence[str] = ()) -> str:
    """The release in the index's spelling, ``v0.11`` as ``0.11.0``; no network.

    Raises ReleaseError for what is no version, no final release, older than `OLDEST_RELEASE` or,
    where ``known`` is given, not among these; the sentence names what is supported.
    """
    if not is_version(text):
        raise ReleaseError(
            f"{text!r} is neither a release of vLLM such as {PINNED} nor a folder that holds "
            f"vllm/__init__.py; {_supported(known)}"
        )
    version = Version(text)
    if version.is_prerelease or version.local:
        raise ReleaseError(
            f"vLLM {text} is not a final release; check it out and give the path of its folder "
            f"({_supported(known)})"
        )
    if version < Version(OLDEST_RELEASE):
        raise ReleaseError(
            f"vLLM {text} is too old: AsyncModelRunnerOutput, which the worker here fills, came "
            f"with {OLDEST_RELEASE}; {_supported(known)}"
        )
    if not known:
        padded = ".".join(map(str, (*version.release, 0, 0)[: max(3, len(version.release))]))
        return padded if version.post is None else f"{padded}.post{version.post}"
    for each in known:
        if Version(each) == version:
            return each
    raise ReleaseError(
        f"vLLM {text} is not on the package index; did you mean "
        f"{', '.join(_nearest(version, known))}? "
        f"({_supported(known)})"
    )


def is_range(text: str) -> bool:
    """Whether ``text`` stands for several releases: ``A..B``, ``A..``, ``..B`` or ``all``."""
    return text == "all" or (".." in text and "/" not in text)


def within(text: str, known: Sequence[str], *, last_patches: bool = False) -> list[str]:
    """The releases of a range among ``known``, oldest first; of ``all`` those since `FIRST`.

    Both ends belong to it and need not be releases themselves. ``last_patches``: the last of each
    minor version only. Raises ReleaseError where there is none.
    """
    low, high = ("", "") if text == "all" else text.split("..", maxsplit=1)
    for end in (low, high):
        if end and not is_version(end):
            raise ReleaseError(f"{text!r} is no range: {end!r} is no version; as in 0.10.2..0.12.0")
    first = Version(low or FIRST)
    found = sorted(
        v for v in map(Version, known) if first <= v and (not high or v <= Version(high))
    )
    if not found:
        raise ReleaseError(f"{text} holds no release of vLLM; {_supported(known)}")
    if last_patches:
        found = list({version.release[:2]: version for version in found}.values())
    return [str(version) for version in found]


def _supported(known: Sequence[str]) -> str:
    newest = max(map(Version, known), default=None)
    if newest is None or newest < Version(PINNED):
        return (
            f"supported are {OLDEST_RELEASE} to {PINNED} and what newer ones the package index has"
        )
    return f"supported are {OLDEST_RELEASE} to {newest}"


def _nearest(version: Version, known: Sequence[str]) -> list[str]:
    """Up to two releases below and two above, oldest first."""
    supported = sorted(each for each in map(Version, known) if each >= Version(OLDEST_RELEASE))
    at = bisect_left(supported, version)
    return [str(each) for each in supported[max(at - 2, 0) : at + 2]] or ["none"]

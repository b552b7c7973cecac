"""Which releases of vLLM are supported."""

from bisect import bisect_left
from collections.abc import Sequence

from packaging.version import Version

from engines.release_names import in_range, is_version
from engines.vllm.cache import ReleaseError

# The release whose dependencies all others run over. Newer ones may run too; the import after
# unpacking tells.
PINNED = "0.32.0"
OLDEST_RELEASE = "0.10.2"
FIRST = "0.10.0"
"""Where ``all`` begins: the first minor version of which some release runs."""


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


def within(text: str, known: Sequence[str], *, last_patches: bool = False) -> list[str]:
    """The releases of a range among ``known``, oldest first; of ``all`` those since `FIRST`.

    As `in_range`. Raises ReleaseError where there is none, ValueError where it is no range.
    """
    found = in_range(text, known, first=FIRST, last_patches=last_patches)
    if not found:
        raise ReleaseError(f"{text} holds no release of vLLM; {_supported(known)}")
    return found


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

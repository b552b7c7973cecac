"""Which releases of vLLM are supported."""

from bisect import bisect_left
from collections.abc import Sequence

from packaging.version import InvalidVersion, Version

from engines.vllm.cache import ReleaseError

# The release whose dependencies all others run over. Newer ones may run too; the import after
# unpacking tells.
PINNED = "0.32.0"
OLDEST = "0.10.2"


def is_version(text: str) -> bool:
    """Whether ``text`` can be read as a version at all."""
    try:
        Version(text)
    except InvalidVersion:
        return False
    return True


def check_version(text: str, known: Sequence[str] = ()) -> str:
    """The release in the index's spelling, ``v0.11`` as ``0.11.0``; no network.

    Raises ReleaseError for what is no version, no final release, older than `OLDEST` or, where
    ``known`` is given, not among these; the sentence names what is supported.
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
    if version < Version(OLDEST):
        raise ReleaseError(f"vLLM {text} is too old; {_supported(known)}")
    if not known:
        padded = ".".join(map(str, (*version.release, 0, 0)[: max(3, len(version.release))]))
        return padded if version.post is None else f"{padded}.post{version.post}"
    for each in known:
        if Version(each) == version:
            return each
    raise ReleaseError(
        f"vLLM {text} is not on the package index; nearest: {', '.join(_nearest(version, known))} "
        f"({_supported(known)})"
    )


def _supported(known: Sequence[str]) -> str:
    newest = max(map(Version, known), default=None)
    if newest is None or newest < Version(PINNED):
        return f"supported are {OLDEST} to {PINNED} and what newer ones the package index has"
    return f"supported are {OLDEST} to {newest}"


def _nearest(version: Version, known: Sequence[str]) -> list[str]:
    """Up to two releases below and two above, oldest first."""
    supported = sorted(each for each in map(Version, known) if each >= Version(OLDEST))
    at = bisect_left(supported, version)
    return [str(each) for each in supported[max(at - 2, 0) : at + 2]] or ["none"]

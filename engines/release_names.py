"""What a release may be called, whichever engine's it is: a version, or a range of them."""

from collections.abc import Sequence

from packaging.version import InvalidVersion, Version


def is_version(text: str) -> bool:
    """Whether ``text`` can be read as a version at all."""
    try:
        Version(text)
    except InvalidVersion:
        return False
    return True


def is_range(text: str) -> bool:
    """Whether ``text`` stands for several releases: ``A..B``, ``A..``, ``..B`` or ``all``."""
    return text == "all" or (".." in text and "/" not in text)


def in_range(
    text: str, known: Sequence[str], *, first: str = "0", last_patches: bool = False
) -> list[str]:
    """The releases of a range among ``known``, as they are spelled there, oldest first.

    Both ends belong to it and need not be releases themselves; without the lower one it begins at
    ``first``. ``last_patches``: the last of each minor version only. Raises ValueError where an
    end is no version.
    """
    low, high = ("", "") if text == "all" else text.split("..", maxsplit=1)
    for end in (low, high):
        if end and not is_version(end):
            raise ValueError(f"{text!r} is no range: {end!r} is no version; as in 0.10.2..0.12.0")
    found = sorted(
        (version, spelled)
        for spelled, version in ((each, Version(each)) for each in known)
        if Version(low or first) <= version and (not high or version <= Version(high))
    )
    if last_patches:
        found = list({version.release[:2]: (version, name) for version, name in found}.values())
    return [spelled for _, spelled in found]

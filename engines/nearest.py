"""What an unknown name may have been meant to be."""

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Up to three of the known names that are like it; all of them where none is."""
    names = list(known)
    return difflib.get_close_matches(name, names, n=3, cutoff=0.4) or names

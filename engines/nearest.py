"""What an unknown name may have been meant to be."""

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Up to three of the known names that begin with it or are like it; all where none is."""
    names = list(known)
    begun = [each for each in names if name and each.startswith(name)]
    like = difflib.get_close_matches(name, names, n=3, cutoff=0.4)
    return list(dict.fromkeys([*begun, *like]))[:3] or names

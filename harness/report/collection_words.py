"""What collections are called: by generation, or what an incremental collector does instead."""

import re
from collections.abc import Iterable

from harness import format as fmt
from harness.machine.interpreter import is_incremental

_HAS_INCREMENTS = ("young", "increment", "full pass")


def collections_words(counts: Iterable[float | None]) -> str:
    """How many of each kind: "963/87/3"."""
    known = list(counts)
    return fmt.MISSING if all(n is None for n in known) else "/".join(map(fmt.count, known))


def kinds_words(python: str) -> str:
    """What `collections_words` counts in CPython of this version ("3.14.2"), as a table's head."""
    return "young/incr./full" if _has_increments(python) else "g0/g1/g2"


def kind_words(generation: int, python: str) -> str:
    """What this version calls with the number ``generation``, in a sentence."""
    return _HAS_INCREMENTS[generation] if _has_increments(python) else f"generation {generation}"


def _has_increments(python: str) -> bool:
    found = re.match(r"(\d+)\.(\d+)\.(\d+)", python)
    return found is not None and is_incremental(tuple(map(int, found.groups())))

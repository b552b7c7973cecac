"""What an attempt to break gcbench is, and how the same is made again."""

from random import Random
from typing import NamedTuple


class Tried(NamedTuple):
    """An attempt that has ended. ``kinds``: its rows of a table; ``wrong``: nothing if it held."""

    kinds: tuple[str, ...]
    what: str
    wrong: list[str]


def random_of(part: str, seed: int, number: int) -> Random:
    """What the ``number``-th attempt of a part draws from, whichever came before it."""
    return Random(f"{part} {seed} {number}")

"""A table as plain text, before anything is rendered: what terminal and Markdown have in common."""

from collections.abc import Sequence
from typing import NamedTuple

Row = tuple[str, ...]


class PlainTable(NamedTuple):
    """``groups`` of rows are kept apart; every row has a text for each of ``columns``.

    The first ``left`` columns are words, the others figures.
    """

    title: str
    columns: Row
    groups: Sequence[Sequence[Row]]
    caption: str = ""
    left: int = 1

"""Grids of representation × policy: rows of whatever varies, a column a collector policy."""

from collections.abc import Iterable, Mapping
from math import log
from typing import NamedTuple

from dashboards.pictures.sparkline import Sparkline
from harness import format as fmt

COLUMN = "gc"
"""The axis that goes across."""

BETTER = {"higher": "higher is better", "lower": "lower is better"}
"""What a direction says."""

Axes = Mapping[str, str]


class GridCell(NamedTuple):
    """``shade``: from -3, much worse than the baseline, to 3, much better; 0 about the same.
    ``change``: against the baseline, in words. ``verdict``: a word that was judged, else "".
    """

    text: str
    change: str = ""
    shade: int = 0
    verdict: str = ""
    sparkline: Sparkline | None = None
    href: str = ""


class GridTable(NamedTuple):
    """``rows``: values of the axes in ``axes``, and a cell for each of ``columns``."""

    axes: list[str]
    columns: list[str]
    rows: list[tuple[tuple[str, ...], list[GridCell | None]]]
    caption: str = ""


def layout(cells: Iterable[tuple[Axes, GridCell]], caption: str = "") -> GridTable:
    """Put cells in rows by all of their axes but the policy, and in columns by that."""
    placed = list(cells)
    names = list(dict.fromkeys(name for axes, _ in placed for name in axes if name != COLUMN))
    rows: dict[tuple[str, ...], dict[str, GridCell]] = {}
    for axes, cell in placed:
        rows.setdefault(tuple(axes.get(name, "") for name in names), {})[axes.get(COLUMN, "")] = (
            cell
        )
    columns = list(dict.fromkeys(axes.get(COLUMN, "") for axes, _ in placed))
    table = [(row, [cells.get(column) for column in columns]) for row, cells in rows.items()]
    return GridTable(names, columns, table, caption)


def against(value: float | None, baseline: float | None, direction: str) -> tuple[str, int]:
    """A change in words and its shade; of a metric without a direction there is no shade."""
    if value is None or baseline is None or value <= 0 or baseline <= 0:
        return "", 0
    size = abs(log(value / baseline))
    level = sum(size > limit for limit in (0.02, 0.1, 0.4))
    sign = {"higher": 1, "lower": -1}.get(direction, 0) * (1 if value > baseline else -1)
    return fmt.percent(value / baseline - 1, signed=True), sign * level

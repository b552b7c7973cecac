"""A plain table as lines that fit a width: no figure is ever torn, and no row wraps."""

from collections.abc import Iterator, Sequence

from rich.cells import cell_len, chop_cells

from harness.format import printable
from harness.render.table import PlainTable, Row

_GAPS = (3, 2)
"""Blanks between two columns, the first that fits."""
_INDENT = "  "
_SEPARATOR = " · "
"""Between the parts of a name that cells share."""
_LEAST_NAME = 12
"""Columns that names get at least, before a table is continued below."""

TextLine = tuple[tuple[str, int], ...]
"""Texts with the columns of the table that they are of, to be joined as they stand."""


def table_lines(table: PlainTable, width: int) -> Iterator[TextLine]:
    """The head, a rule and the rows of a table, groups apart.

    Where names are too long for the line, those that share their beginning stand below it; longer
    ones get a line of their own. Columns that find no room follow below the others.
    """
    groups = [[tuple(map(_on_lines, row)) for row in group] for group in table.groups]
    if not table.columns:
        return
    start = 1
    while start < len(table.columns) or start == 1:
        end = _how_many(table.columns, groups, start, width)
        if start > 1:
            yield ()
        taken = (0, *range(start, end))
        part = [[tuple(row[n] for n in taken) for row in group] for group in groups]
        head = tuple(table.columns[n] for n in taken)
        for line in _part(head, part, width, max(table.left - start + 1, 1)):
            yield tuple((text, taken[number]) for text, number in line)
        start = max(end, start + 1)


def _on_lines(text: str) -> str:
    """A text whose own line ends stay; figures stand beside the last line of a name."""
    return "\n".join(map(printable, text.split("\n")))


def _widths(columns: Row, rows: Sequence[Row]) -> list[int]:
    return [
        max(map(cell_len, [*column.split("\n"), *(row[n].split("\n")[-1] for row in rows)]))
        for n, column in enumerate(columns)
    ]


def _how_many(columns: Row, groups: Sequence[Sequence[Row]], start: int, width: int) -> int:
    """Up to which column figures fit beside names, one figure at least."""
    widths = _widths(columns, [row for group in groups for row in group])
    room = width - min(widths[0], _LEAST_NAME)
    end = start
    while end < len(columns) and room >= widths[end] + _GAPS[-1]:
        room -= widths[end] + _GAPS[-1]
        end += 1
    return max(end, min(start + 1, len(columns)))


def _part(
    columns: Row, groups: Sequence[Sequence[Row]], width: int, left: int
) -> Iterator[TextLine]:
    rows = [row for group in groups for row in group]
    widths = _widths(columns, rows)
    gap = next((gap for gap in _GAPS if sum(widths) + gap * (len(widths) - 1) <= width), _GAPS[-1])
    room = width - sum(widths[1:]) - gap * (len(widths) - 1)
    kept = None if widths[0] <= room else _parts_kept(rows, room)
    if kept is not None:
        names = [cell_len(_below(_last_line(row), kept)[1]) for row in rows]
        widths[0] = max(cell_len(columns[0]), *names)
    elif widths[0] > room:
        widths[0] = max(room, cell_len(columns[0]))
    if any(columns):
        heads = [column.split("\n") for column in columns]
        height = max(map(len, heads))
        heads = [[*[""] * (height - len(head)), *head] for head in heads]
        for line in zip(*heads, strict=True):
            yield _line(line, widths, gap, left)
        yield (("─" * min(sum(widths) + gap * (len(widths) - 1), width), 0),)
    for number, group in enumerate(groups):
        if number and group:
            yield ()
        yield from _rows(group, widths, gap, left, kept, width)


def _rows(
    rows: Sequence[Row], widths: Sequence[int], gap: int, left: int, kept: int | None, width: int
) -> Iterator[TextLine]:
    above = ""
    for row in rows:
        *before, last = row[0].split("\n")
        yield from (((piece, 0),) for line in before for piece in chop_cells(line, width))
        shared, name = ("", last) if kept is None else _below(last, kept)
        if shared and shared != above:
            yield from (((piece, 0),) for piece in chop_cells(shared, width))
        above = shared
        if cell_len(name) > widths[0]:
            yield from (((piece, 0),) for piece in chop_cells(name, width))
            name = ""
        if name or any(row[1:]):
            yield _line((name, *row[1:]), widths, gap, left)


def _parts_kept(rows: Sequence[Row], room: int) -> int | None:
    """How many of its last parts a row's name keeps, for all to fit; None where none do."""
    names = [_last_line(row) for row in rows]
    for kept in range(max(name.count(_SEPARATOR) for name in names), 0, -1):
        if all(cell_len(_below(name, kept)[1]) <= room for name in names):
            return kept
    return None


def _last_line(row: Row) -> str:
    return row[0].split("\n")[-1]


def _below(name: str, kept: int) -> tuple[str, str]:
    """What stands above the row, and its own last ``kept`` parts."""
    parts = name.split(_SEPARATOR)
    if len(parts) <= kept:
        return "", name
    return _SEPARATOR.join(parts[:-kept]), _INDENT + _SEPARATOR.join(parts[-kept:])


def _line(texts: Sequence[str], widths: Sequence[int], gap: int, left: int) -> TextLine:
    parts = []
    for number, (text, width) in enumerate(zip(texts, widths, strict=True)):
        blanks = " " * (width - cell_len(text))
        shown = text + blanks if number < left else blanks + text
        parts.append((" " * gap * (number > 0) + shown, number))
    return tuple(parts)

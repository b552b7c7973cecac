"""A list on a terminal: things by kind, each with what it is."""

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.render.safe_text import safe_text


def list_table(rows: Iterable[tuple[str, str, str]], console: Console) -> None:
    """Print (kind, name, what it is), rows of a kind together under its heading."""
    kinds: dict[str, list[tuple[str, str]]] = {}
    for kind, name, words in rows:
        kinds.setdefault(kind, []).append((name, words))
    grid = Table.grid(padding=(0, 2))
    for kind, entries in kinds.items():
        grid.add_row(Text(kind, style="bold"))
        for name, words in entries:
            grid.add_row(safe_text(f"  {name}"), safe_text(words))
    console.print(grid)

"""Reports for people on a terminal: they fit 80 columns and are complete without colour."""

from collections.abc import Sequence
from typing import IO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.experiment.result import ExperimentResult
from harness.report.bars import bars_table
from harness.report.header import header
from harness.report.messages import messages_tables
from harness.report.pivot import pivot_tables
from harness.report.safe_text import safe_text
from harness.report.summary import (
    apart_tables,
    cells_table,
    failure_lines,
    modes_tables,
    phases_table,
    verdict_tables,
)
from harness.report.table import PlainTable
from harness.report.table_layout import table_lines
from harness.report.verdict_words import SIGNS

WIDTH, MOST = 80, 100
"""Columns of what is printed into a file or a pipe, and the most that a terminal gets."""

_STYLES = {SIGNS["better"]: "green", SIGNS["worse"]: "red", SIGNS["inconclusive"]: "yellow"}


def make_console(file: IO[str] | None = None) -> Console:
    """A console as wide as the terminal, 100 columns at most; 80 where there is none."""
    console = Console(file=file, highlight=False)
    console.width = min(console.width, MOST) if console.is_terminal else WIDTH
    return console


def experiment_tables(
    result: ExperimentResult,
    console: Console,
    phases: bool = False,
    conclusions: Sequence[str] = (),
) -> None:
    """Print all of an experiment's report, what was concluded first."""
    if conclusions:
        print_lines("Conclusions", conclusions, console, style="bold")
        console.print()
    print_pairs(header(result), console)
    for table in pivot_tables(result):
        print_table(table, console)
    print_table(cells_table(result), console)
    if phases:
        print_table(phases_table(result), console)
    bars = bars_table(result)
    if bars is not None:
        print_table(bars, console, left=2)
    for table in (
        *modes_tables(result),
        *messages_tables(result),
        *verdict_tables(result),
        *apart_tables(result),
    ):
        print_table(table, console)
    print_lines("Trials without a result", failure_lines(result), console, style="red")
    print_lines("Notes", result.notes, console)


def print_finding(
    answer: Sequence[str],
    tables: Sequence[PlainTable],
    notes: Sequence[str],
    about: Sequence[tuple[str, str]],
) -> None:
    """Print what a command has found out, the answer first, and last what it was measured on."""
    console = make_console()
    print_lines("", answer, console, style="bold")
    for table in tables:
        print_table(table, console)
    print_lines("Notes", notes, console)
    console.print()
    print_pairs(about, console)


def print_title(words: str, right: str, console: Console) -> None:
    """Print a verdict with something at the line's right end, cut where both do not fit."""
    line = safe_text(words, style=f"bold {_STYLES.get(words[:1], '')}".strip())
    line.truncate(console.width - len(right) - 2, overflow="ellipsis", pad=bool(right))
    line.append(f"  {right}" if right else "", "default")
    console.print(line)


def print_table(table: PlainTable, console: Console, left: int = 1) -> None:
    """Print a plain table; its first ``left`` columns are words, the others figures."""
    console.print()
    if table.title:
        console.print(safe_text(table.title, style="bold"))
    for line in table_lines(table, console.width, left):
        shown = Text()
        for text, column in line:
            shown.append(text, _STYLES.get(text.strip()[:1], "") if column else "")
        shown.rstrip()
        console.print(shown, no_wrap=True, overflow="ignore", crop=False)
    if table.caption:
        console.print(safe_text(table.caption, style="italic"))


def print_pairs(pairs: Sequence[tuple[str, str]], console: Console) -> None:
    """Print labels and what belongs to them, the words wrapped beside their label."""
    grid = Table.grid(padding=(0, 2))
    for label, words in pairs:
        grid.add_row(safe_text(label, style="bold"), safe_text(words, overflow="fold"))
    console.print(grid)


def print_lines(title: str, lines: Sequence[str], console: Console, style: str = "") -> None:
    """Print a list under its title, if it has one; nothing where there is nothing to list."""
    if not lines:
        return
    console.print()
    if title:
        console.print(safe_text(title, style="bold"))
    grid = Table.grid(padding=(0, 1))
    for line in lines:
        grid.add_row(safe_text("-"), safe_text(line, style=style, overflow="fold"))
    console.print(grid)

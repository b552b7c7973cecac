"""Tables for people on a terminal: at most 100 columns, and complete without colour."""

from collections.abc import Sequence
from typing import IO

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from harness.experiment.result import ExperimentResult
from harness.report.bars import bars_table
from harness.report.header import header
from harness.report.messages import messages_tables
from harness.report.safe_text import safe_text
from harness.report.summary import (
    VERDICTS,
    apart_tables,
    cells_table,
    failure_lines,
    modes_tables,
    phases_table,
    verdict_tables,
)
from harness.report.table import PlainTable

WIDTH = 100

_STYLES = {
    VERDICTS["better"]: "green",
    VERDICTS["worse"]: "red",
    VERDICTS["inconclusive"]: "yellow",
}


def make_console(file: IO[str] | None = None) -> Console:
    """A console of 100 columns, or of the terminal's width where that is less."""
    console = Console(file=file, highlight=False)
    console.width = min(console.width, WIDTH) if console.is_terminal else WIDTH
    return console


def experiment_tables(
    result: ExperimentResult,
    console: Console,
    phases: bool = False,
    conclusions: Sequence[str] = (),
) -> None:
    """Print an experiment's report: header, cells, bars, verdicts, failures, notes, conclusions."""
    print_pairs(header(result), console)
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
    print_lines("Conclusions", conclusions, console, style="bold")


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


def print_table(table: PlainTable, console: Console, left: int = 1) -> None:
    """Print a plain table; its first ``left`` columns are words, the others figures.

    The first column wraps where it must; no other may, or a figure would be torn.
    """
    shown = Table(box=SIMPLE_HEAD, padding=(0, 1), pad_edge=False, show_edge=False,
                  show_header=any(table.columns), header_style="")  # fmt: skip
    for number, column in enumerate(table.columns):
        shown.add_column(
            safe_text(column), justify="left" if number < left else "right",
            no_wrap=number > 0, overflow="fold", vertical="bottom" if number else "top",
        )  # fmt: skip
    for group in table.groups:
        for row in group:
            shown.add_row(*(safe_text(text, style=_STYLES.get(text, "")) for text in row))
        shown.add_section()
    width = min(console.width, WIDTH)
    console.print()
    console.print(safe_text(table.title, style="bold"), width=width)
    console.print(shown, width=width)
    if table.caption:
        console.print(safe_text(table.caption, style="italic"), width=width)


def print_pairs(pairs: Sequence[tuple[str, str]], console: Console) -> None:
    """Print labels and what belongs to them, the words wrapped beside their label."""
    grid = Table.grid(padding=(0, 2))
    for label, words in pairs:
        grid.add_row(safe_text(label, style="bold"), safe_text(words, overflow="fold"))
    console.print(grid, width=min(console.width, WIDTH))


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
    console.print(grid, width=min(console.width, WIDTH))

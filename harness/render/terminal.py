"""Reports for people on a terminal: they fit 80 columns and are complete without colour."""

from collections.abc import Sequence
from typing import IO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.render.report import Pairs, Report, Section, known
from harness.render.safe_text import safe_text
from harness.render.table import PlainTable
from harness.render.table_layout import table_lines
from harness.render.verdict_words import SIGNS

WIDTH, MOST = 80, 100
"""Columns of what is printed into a file or a pipe, and the most that a terminal gets."""

_MOST_LINES = 5
"""Of what went wrong, where there are no details."""

_STYLES = {
    SIGNS["better"]: "green",
    SIGNS["worse"]: "red",
    SIGNS["inconclusive"]: "yellow",
    "✓": "green",
    "!": "yellow",
    "✗": "red",
    "⇅": "red",
}


def make_console(file: IO[str] | None = None) -> Console:
    """A console as wide as the terminal, 100 columns at most; 80 where there is none."""
    console = Console(file=file, highlight=False)
    console.width = min(console.width, MOST) if console.is_terminal else WIDTH
    return console


def print_report(
    report: Report, console: Console, more: str, *, status: int | None = None, details: bool = False
) -> None:
    """Print it, the answer first; ``more`` is the command that prints it with ``details``.

    ``status``: what the command exits with, where that is a part of its answer.
    """
    print_title(report.answer, "" if status is None else f"exit {status}", console)
    if report.attention:
        console.print(safe_text(report.attention, style="yellow"))
    if report.short:
        console.print()
        print_pairs(report.short, console)
    for table in report.tables:
        print_table(table, console)
    if details or not report.short:
        print_lines("", report.sentences, console)
    if report.snippet:
        console.print(safe_text(f"\n{report.snippet}"))
    for section in report.sections:
        _print_section(section, console, details)
    for each in report.lists:
        if each.is_bad:
            print_lines(each.title, each.lines if details else _first(each.lines), console, "red")
    if details:
        _print_details(report, console)
    facts = report.facts if details else ()
    if pairs := [*report.sure, *facts, *known([("details", _unseen(report, more, details))])]:
        console.print()
        print_pairs(pairs, console)
    own = [("command", report.command)] if details else []
    if commands := known([*report.next, *own]):
        console.print()
        _print_commands(commands, console)


def _print_commands(commands: Pairs, console: Console) -> None:
    """Each in one line, whatever its length: to be copied."""
    width = max(len(label) for label, _ in commands)
    for label, words in commands:
        line = safe_text(f"{label:{width}}  ", style="bold")
        line.append_text(safe_text(words, style="not bold"))
        console.print(line, soft_wrap=True)


def _print_section(section: Section, console: Console, details: bool) -> None:
    console.print()
    print_title(section.title, "", console)
    if not details:
        print_pairs(section.short, console)
        return
    for table in section.tables:
        print_table(table, console)
    print_lines("", section.lines, console)
    print_lines("To measure it again", section.commands, console)


def _print_details(report: Report, console: Console) -> None:
    in_text = [picture.in_text for picture in report.pictures if picture.in_text]
    for table in (*report.more, *in_text):
        print_table(table, console)
    for each in report.lists:
        if not each.is_bad:
            print_lines(each.title, each.lines, console)


def _first(lines: Sequence[str]) -> list[str]:
    more = len(lines) - _MOST_LINES
    return [*lines[:_MOST_LINES], *([f"and {more} more"] if more > 0 else [])]


def _unseen(report: Report, more: str, details: bool) -> str:
    """The command that shows all, with what there is to see, counted."""
    if details or not more:
        return ""
    hidden = sum(len(each.lines) for each in report.lists if not each.is_bad)
    noun = "sentence" if hidden == 1 else "sentences"
    return more + (f" ({hidden} more {noun})" if hidden else "")


def print_title(words: str, right: str, console: Console) -> None:
    """Print a verdict, with something at the line's right end or over as many lines as it needs."""
    line = safe_text(words, style=f"bold {_STYLES.get(words[:1], '')}".strip())
    if right:
        line.truncate(console.width - len(right) - 2, overflow="ellipsis", pad=True)
        line.append(f"  {right}", "default")
    console.print(line)


def print_table(table: PlainTable, console: Console) -> None:
    """Print a plain table."""
    console.print()
    if table.title:
        console.print(safe_text(table.title, style="bold"))
    for line in table_lines(table, console.width):
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
        style = f"bold {_STYLES.get(label[:1], '')}".strip()
        grid.add_row(safe_text(label, style=style), safe_text(words, overflow="fold"))
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

"""A night on a terminal: what changed and with which commit, in short or in full."""

from rich.console import Console

from harness.report.nightly import (
    alert_lines,
    alert_pairs,
    alert_table,
    alert_title,
    failed_lines,
    nightly_headline,
    nightly_pairs,
    suspicious_table,
)
from harness.report.terminal import print_lines, print_pairs, print_table, print_title
from harness.tracking.nightly.result import NightlyResult


def nightly_report(
    result: NightlyResult, status: int, console: Console, *, details: bool = False
) -> None:
    """Print it, in short unless with ``details``; ``status`` is what the command exits with."""
    print_title(nightly_headline(result), f"exit {status}", console)
    for alert in result.alerts:
        console.print()
        if details:
            print_table(alert_table(alert), console)
            print_lines("", alert_lines(alert), console)
            print_lines("To measure it again", alert.command, console)
        else:
            print_title(alert_title(alert), "", console)
            print_pairs(alert_pairs(alert), console)
    if table := suspicious_table(result.suspicious):
        print_table(table, console)
    print_lines("Not measured", failed_lines(result), console, style="red")
    print_lines("Notes", [*result.notes, *result.problems], console)
    console.print()
    print_pairs(nightly_pairs(result), console)

"""The doctor's findings on a terminal."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.machine.doctor.finding import DoctorFinding
from harness.report.safe_text import safe_text

_SIGNS = {"ok": ("✓ ok", "green"), "warn": ("! warn", "yellow"), "bad": ("✗ bad", "red")}


def doctor_table(findings: Sequence[DoctorFinding], console: Console) -> None:
    """Print each finding with what to do about it, and how many of each kind there are."""
    grid = Table.grid(padding=(0, 2))
    for finding in findings:
        sign, style = _SIGNS[finding.level]
        words = safe_text(finding.detail)
        if finding.advice:
            words.append(f"\n→ {finding.advice}", style="bold")
        grid.add_row(Text(sign, style=style), safe_text(finding.what), words)
    console.print(grid)
    levels = [finding.level for finding in findings]
    console.print(Text(f"{levels.count('bad')} bad, {levels.count('warn')} to watch"))

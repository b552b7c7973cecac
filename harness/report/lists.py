"""The smaller tables: the doctor's findings, a machine's noise, what there is to choose from."""

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.machine.doctor.finding import Finding
from harness.report.safe_text import safe_text

_SIGNS = {"ok": ("✓ ok", "green"), "warn": ("! warn", "yellow"), "bad": ("✗ bad", "red")}


def doctor_table(findings: Iterable[Finding], console: Console) -> None:
    """Print each finding with what to do about it, and how many of each kind there are."""
    grid = Table.grid(padding=(0, 2))
    findings = list(findings)
    for finding in findings:
        sign, style = _SIGNS[finding.level]
        words = safe_text(finding.detail)
        if finding.advice:
            words.append(f"\n→ {finding.advice}", style="bold")
        grid.add_row(Text(sign, style=style), safe_text(finding.what), words)
    console.print(grid)
    levels = [finding.level for finding in findings]
    console.print(Text(f"{levels.count('bad')} bad, {levels.count('warn')} to watch"))


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

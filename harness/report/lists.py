"""The smaller tables: the doctor's findings, a machine's noise, what there is to choose from."""

import math
from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness import format as fmt
from harness.machine.doctor.finding import Finding
from harness.machine.other_work import Surroundings
from harness.report.power import detects, surroundings_words
from harness.report.safe_text import safe_text
from harness.report.table import PlainTable
from harness.report.terminal import WIDTH, print_table
from harness.statistics.noise_floor import NoiseFloor

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
    console.print(grid, width=min(console.width, WIDTH))
    levels = [finding.level for finding in findings]
    console.print(Text(f"{levels.count('bad')} bad, {levels.count('warn')} to watch"))


def noise_pairs(surroundings: Surroundings | None) -> list[tuple[str, str]]:
    """How busy the machine was, as (label, words); nothing where that is not known."""
    if surroundings is None:
        return []
    lines = [("surroundings", surroundings_words(surroundings))]
    if surroundings.is_busy:
        words = "this run settles nothing about a quiet machine: this is the noise of a busy one"
        lines.insert(0, ("attention", f"{words} (--wait-quiet 10m waits for a quiet one)"))
    return lines


def noise_table(
    metric: str, floor: NoiseFloor, console: Console, seconds_per_round: float = 0.0
) -> None:
    """Print what equal cells differ by on this machine, and what change it can thus find.

    ``seconds_per_round``: how long a round of the two takes, 0 where that is not known.
    """
    rows = [
        ("a trial against the mean of all, standard deviation", fmt.percent(floor.trial_cv)),
        (
            "a trial against its equal in the same round, standard deviation",
            fmt.percent(math.expm1(floor.sd_log_ratio)),
        ),
    ]

    def rounds(number: int) -> str:
        minutes = number * seconds_per_round / 60
        return f"{number} rounds" + (f", {minutes:.1f} min" if minutes else "")

    found = [(f"smallest change that {rounds(n)} show 8 times out of 10", detects(mde))
             for n, mde in sorted(floor.mde.items())]  # fmt: skip
    title = f"Noise of {metric} over {floor.rounds} rounds of {floor.cells} equal cells"
    print_table(PlainTable(title, ("", ""), [rows, found]), console)


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
    console.print(grid, width=min(console.width, WIDTH))

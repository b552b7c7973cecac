"""The smaller tables: the doctor's findings, a machine's noise, what there is to choose from."""

import math
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness import format as fmt
from harness.experiment.node_noise import MOST_DETECTABLE, ROUNDS, NodeNoise
from harness.machine.doctor.finding import Finding
from harness.machine.other_work import Surroundings
from harness.report.power import detects, surroundings_words
from harness.report.safe_text import safe_text
from harness.report.table import PlainTable
from harness.report.terminal import print_table
from harness.report.verdict_words import MEANINGS
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
    console.print(grid)
    levels = [finding.level for finding in findings]
    console.print(Text(f"{levels.count('bad')} bad, {levels.count('warn')} to watch"))


def noise_answer(metric: str, floor: NoiseFloor) -> str:
    """What this machine can find, in a sentence."""
    mde = floor.mde.get(floor.rounds)
    rounds, mde = (floor.rounds, mde) if mde is not None else min(floor.mde.items())
    return (
        f"{rounds} rounds on this machine detect changes of {metric.replace('_', ' ')} from "
        f"{detects(mde)}."
    )


def noise_pairs(surroundings: Surroundings | None) -> list[tuple[str, str]]:
    """How busy the machine was, as (label, words); nothing where that is not known."""
    if surroundings is None:
        return []
    lines = [("machine", surroundings_words(surroundings))]
    if surroundings.is_busy:
        words = (
            "this is the noise of a busy machine and says nothing about a quiet one; "
            "--wait-quiet 10m waits for that"
        )
        lines.insert(0, ("attention", words))
    return lines


def noise_table(
    metric: str, floor: NoiseFloor, console: Console, seconds_per_round: float = 0.0
) -> None:
    """Print what equal cells differ by on this machine, and what change it can thus find.

    ``seconds_per_round``: how long a round of the two takes, 0 where that is not known.
    """
    rows = [
        ("one trial, standard deviation", fmt.percent(floor.trial_cv)),
        ("two trials of a round, standard deviation", fmt.percent(math.expm1(floor.sd_log_ratio))),
    ]

    def rounds(number: int) -> str:
        minutes = number * seconds_per_round / 60
        return f"{number} rounds" + (f", about {minutes:.1f} min" if minutes else "")

    found = [(f"detected in {rounds(n)}", detects(mde)) for n, mde in sorted(floor.mde.items())]
    title = f"Noise of {metric} over {floor.rounds} rounds of {floor.cells} equal cells"
    caption = f"detected: {MEANINGS['detects']}"
    print_table(PlainTable(title, ("", ""), [rows, found], caption), console)


def node_noise_table(nodes: Sequence[NodeNoise], console: Console) -> None:
    """Print the noise of each node, and the flag that leaves out those that are too noisy."""

    def row(node: NodeNoise) -> tuple[str, ...]:
        return (
            node.node,
            str(node.rounds),
            fmt.percent(node.trial_cv),
            fmt.percent(node.sd_log_ratio),
            "too few blocks" if node.mde is None else detects(node.mde),
            "" if node.is_fit else "leave out",
        )

    columns = ("node", "blocks", "trial sd", "pair sd", f"detects in\n{ROUNDS} rounds", "")
    caption = f"A node is fit if it detects {fmt.percent(MOST_DETECTABLE)} in {ROUNDS} rounds."
    print_table(PlainTable("Noise by node", columns, [list(map(row, nodes))], caption), console)
    if unfit := [node.node for node in nodes if not node.is_fit]:
        console.print(safe_text(f"Measure with --leave-out {','.join(unfit)}."), soft_wrap=True)


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

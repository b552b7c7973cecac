"""A noise floor on a terminal: what equal cells differ by, and what can be found here."""

import math
from collections.abc import Sequence

from rich.console import Console

from harness import format as fmt
from harness.experiment.node_noise import MOST_DETECTABLE, ROUNDS, NodeNoise
from harness.experiment.noise_result import NoiseResult
from harness.machine.other_work import Surroundings
from harness.report.power import detects, surroundings_words
from harness.report.safe_text import safe_text
from harness.report.summary import metric_words
from harness.report.table import PlainTable
from harness.report.terminal import print_pairs, print_table, print_title
from harness.report.verdict_words import MEANINGS


def noise_report(result: NoiseResult, console: Console) -> None:
    """Print it, the answer first."""
    if not result.is_complete:
        console.print(f"✗ incomplete: {result.rounds} rounds measured and no noise floor yet")
        return
    print_title(_answer(result), "", console)
    if pairs := _pairs(result.surroundings):
        print_pairs(pairs, console)
    print_table(_table(result), console)
    if result.nodes:
        _nodes(result.nodes, console)


def _answer(result: NoiseResult) -> str:
    """What this machine can find, in a sentence."""
    mde = result.mde.get(result.rounds)
    rounds, mde = (result.rounds, mde) if mde is not None else min(result.mde.items())
    return (
        f"{rounds} rounds on this machine detect changes of {metric_words(result.metric)} from "
        f"{detects(mde)}."
    )


def _pairs(surroundings: Surroundings | None) -> list[tuple[str, str]]:
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


def _table(result: NoiseResult) -> PlainTable:
    """What equal cells differ by on this machine, and what change it can thus find."""
    rows = [
        ("one trial, standard deviation", fmt.percent(result.trial_cv)),
        ("two trials of a round, standard deviation", _spread(result.sd_log_ratio)),
    ]

    def rounds(number: int) -> str:
        minutes = number * result.seconds_per_round / 60
        return f"{number} rounds" + (f", about {minutes:.1f} min" if minutes else "")

    found = [(f"detected in {rounds(n)}", detects(mde)) for n, mde in sorted(result.mde.items())]
    title = f"Noise of {result.metric} over {result.rounds} rounds of {result.cells} equal cells"
    return PlainTable(title, ("", ""), [rows, found], f"detected: {MEANINGS['detects']}")


def _nodes(nodes: Sequence[NodeNoise], console: Console) -> None:
    """Print the noise of each node, and which are left out for it."""

    def row(node: NodeNoise) -> tuple[str, ...]:
        return (
            node.node,
            str(node.rounds),
            fmt.percent(node.trial_cv),
            _spread(node.sd_log_ratio),
            "too few blocks" if node.mde is None else detects(node.mde),
            "" if node.is_fit or node.mde is None else "left out",
        )

    columns = ("node", "blocks", "trial sd", "pair sd", f"detects in\n{ROUNDS} rounds", "")
    caption = f"A node is fit if it detects {fmt.percent(MOST_DETECTABLE)} in {ROUNDS} rounds."
    print_table(PlainTable("Noise by node", columns, [list(map(row, nodes))], caption), console)
    if noisy := [node.node for node in nodes if node.mde is not None and not node.is_fit]:
        words = f"From now on --cluster leaves out {', '.join(noisy)}."
        console.print(safe_text(words), soft_wrap=True)


def _spread(sd_log: float | None) -> str:
    """The standard deviation of a ratio, as a share, of that of its logarithm."""
    return fmt.percent(sd_log and math.expm1(sd_log))

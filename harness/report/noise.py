"""A noise floor's report: what equal cells differ by, and what can be found here."""

import math
from collections.abc import Iterator, Sequence
from functools import partial

from harness import format as fmt
from harness.experiment.node_noise import MOST_DETECTABLE, ROUNDS, NodeNoise
from harness.experiment.noise_result import NoiseResult
from harness.experiment.result import ExperimentResult
from harness.render.report import Picture, Report, known, remarks
from harness.render.table import PlainTable, Row
from harness.render.verdict_words import VERDICT_MEANINGS
from harness.report.header import machine_words
from harness.report.power import detects, surroundings_words
from harness.report.steps_image import samples_image
from harness.report.summary import metric_words

_BUSY = (
    "This is the noise of a busy machine and says nothing about a quiet one; --wait 10m "
    "waits for that."
)


def describe_noise(result: NoiseResult) -> Report:
    """What equal cells differ by, and what can be found here."""
    surroundings = result.surroundings
    return Report(
        heading="gcbench doctor --noise",
        name=result.name,
        answer=_answer(result),
        attention=_BUSY if surroundings is not None and surroundings.is_busy else "",
        tables=[
            *([_table(result)] if result.is_complete else []),
            *([_nodes(result.nodes)] if result.nodes else []),
        ],
        sentences=list(_left_out(result.nodes)),
        lists=remarks(result),
        sure=known([("surroundings", surroundings_words(surroundings))]),
        facts=known([("machine", machine_words(result.machine))]),
        command=result.command,
        pictures=list(_pictures(result.experiment)),
    )


def _pictures(experiment: ExperimentResult | None) -> Iterator[Picture]:
    if experiment is not None and any(cell.samples for cell in experiment.cells):
        yield Picture(
            "Every round",
            "The samples of two equal cells, a dot per round, with the median.",
            partial(samples_image, experiment),
        )


def _answer(result: NoiseResult) -> str:
    """What this machine can find, in a sentence."""
    if not result.is_complete:
        return f"✗ incomplete: {result.rounds} rounds measured and no noise floor yet"
    mde = result.mde.get(result.rounds)
    rounds, mde = (result.rounds, mde) if mde is not None else min(result.mde.items())
    return (
        f"{rounds} rounds on this machine detect changes of {metric_words(result.metric)} from "
        f"{detects(mde)}."
    )


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
    return PlainTable(title, ("", ""), [rows, found], f"detected: {VERDICT_MEANINGS['detects']}")


def _nodes(nodes: Sequence[NodeNoise]) -> PlainTable:
    """The noise of each node, and which are left out for it."""

    def row(node: NodeNoise) -> Row:
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
    return PlainTable("Noise by node", columns, [list(map(row, nodes))], caption)


def _left_out(nodes: Sequence[NodeNoise]) -> Iterator[str]:
    if noisy := [node.node for node in nodes if node.mde is not None and not node.is_fit]:
        yield f"From now on --cluster leaves out {', '.join(noisy)}."


def _spread(sd_log: float | None) -> str:
    """The standard deviation of a ratio, as a share, of that of its logarithm."""
    return fmt.percent(sd_log and math.expm1(sd_log))

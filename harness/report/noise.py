"""A noise floor on a terminal: what equal cells differ by, and what can be found here."""

import math
from collections.abc import Iterator, Sequence

from harness import format as fmt
from harness.experiment.node_noise import MOST_DETECTABLE, ROUNDS, NodeNoise
from harness.experiment.noise_result import NoiseResult
from harness.report.power import detects, surroundings_words
from harness.report.report import Report, known
from harness.report.summary import metric_words
from harness.report.table import PlainTable, Row
from harness.report.verdict_words import MEANINGS
from harness.statistics.noise_floor import NoiseFloor

_BUSY = (
    "This is the noise of a busy machine and says nothing about a quiet one; --wait-quiet 10m "
    "waits for that."
)


def describe_noise(result: NoiseResult) -> Report:
    """What equal cells differ by, and what can be found here."""
    floor = _floor(result)
    surroundings = result.surroundings
    return Report(
        heading="gcbench noise",
        name=result.name,
        answer=_answer(result.metric, floor)
        if floor
        else f"✗ incomplete: {result.rounds} rounds measured and no noise floor yet",
        attention=_BUSY if surroundings is not None and surroundings.is_busy else "",
        tables=[
            *([_table(result.metric, floor)] if floor else []),
            *([_nodes(result.nodes)] if result.nodes else []),
        ],
        sentences=list(_left_out(result.nodes)),
        sure=known([("surroundings", surroundings_words(surroundings) if surroundings else "")]),
    )


def _floor(result: NoiseResult) -> NoiseFloor | None:
    if result.trial_cv is None or result.sd_log_ratio is None:
        return None
    return NoiseFloor(
        cells=result.cells,
        rounds=result.rounds,
        trial_cv=result.trial_cv,
        sd_log_ratio=result.sd_log_ratio,
        mde=result.mde,
    )


def _answer(metric: str, floor: NoiseFloor) -> str:
    """What this machine can find, in a sentence."""
    mde = floor.mde.get(floor.rounds)
    rounds, mde = (floor.rounds, mde) if mde is not None else min(floor.mde.items())
    return (
        f"{rounds} rounds on this machine detect changes of {metric_words(metric)} from "
        f"{detects(mde)}."
    )


def _table(metric: str, floor: NoiseFloor) -> PlainTable:
    """What equal cells differ by on this machine, and what change it can thus find."""
    rows = [
        ("one trial, standard deviation", fmt.percent(floor.trial_cv)),
        ("two trials of a round, standard deviation", fmt.percent(math.expm1(floor.sd_log_ratio))),
    ]
    found = [(f"detected in {n} rounds", detects(mde)) for n, mde in sorted(floor.mde.items())]
    title = f"Noise of {metric} over {floor.rounds} rounds of {floor.cells} equal cells"
    return PlainTable(title, ("", ""), [rows, found], f"detected: {MEANINGS['detects']}")


def _nodes(nodes: Sequence[NodeNoise]) -> PlainTable:
    """The noise of each node, and which are left out for it."""

    def row(node: NodeNoise) -> Row:
        return (
            node.node,
            str(node.rounds),
            fmt.percent(node.trial_cv),
            fmt.percent(node.sd_log_ratio and math.expm1(node.sd_log_ratio)),
            "too few blocks" if node.mde is None else detects(node.mde),
            "" if node.is_fit or node.mde is None else "left out",
        )

    columns = ("node", "blocks", "trial sd", "pair sd", f"detects in\n{ROUNDS} rounds", "")
    caption = f"A node is fit if it detects {fmt.percent(MOST_DETECTABLE)} in {ROUNDS} rounds."
    return PlainTable("Noise by node", columns, [list(map(row, nodes))], caption)


def _left_out(nodes: Sequence[NodeNoise]) -> Iterator[str]:
    if noisy := [node.node for node in nodes if node.mde is not None and not node.is_fit]:
        yield f"From now on --cluster leaves out {', '.join(noisy)}."

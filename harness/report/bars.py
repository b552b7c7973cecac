"""Bars for a terminal: the metric that decides, cell by cell, each with its interval."""

from harness import format as fmt
from harness.experiment.result import ExperimentResult
from harness.render.table import PlainTable
from harness.report.summary import by_group, direction_words, on_device
from harness.statistics.median_interval import median_interval

BAR_WIDTH = 44


def bars_table(result: ExperimentResult) -> PlainTable | None:
    """A row of (cell, bar, median) for each cell; None where no cell has the metric, or groups are
    decided by several.
    """
    if len(result.decide) != 1:
        return None
    (metric,) = result.decide
    found = [
        [(cell, cell.metrics[metric]) for cell in group if metric in cell.metrics]
        for group in by_group(result)
    ]
    spans = [median_interval(samples.samples) for group in found for _, samples in group]
    medians = [samples.value for group in found for _, samples in group]
    top = max(
        (
            value
            for value in (*medians, *(high for _, high in filter(None, spans)))
            if value is not None
        ),
        default=0.0,
    )
    if top <= 0:
        return None
    rows = [
        [
            (
                cell.id,
                bar(samples.value, median_interval(samples.samples), top),
                fmt.with_unit(samples.value, samples.unit),
            )
            for cell, samples in group
        ]
        for group in found
    ]
    return PlainTable(
        f"{metric}, {direction_words(metric)}{on_device(result.cells)}",
        ("cell", "", "median"),
        [group for group in rows if group],
        "│ median over rounds, ▒ its 95 % interval. Two intervals may overlap and the verdict on "
        "them still be clear, because a verdict compares cells round by round.",
        left=2,
    )


def bar(value: float | None, interval: tuple[float, float] | None, top: float) -> str:
    """A bar from zero to ``value`` on a scale that ends at ``top``: "██████▒│▒▒"."""
    if value is None:
        return ""
    low, high = interval or (value, value)

    def position(x: float) -> int:
        return round(min(max(x / top, 0.0), 1.0) * (BAR_WIDTH - 1))

    middle = position(value)
    solid = min(position(low), middle)
    return "█" * solid + "▒" * (middle - solid) + "│" + "▒" * (position(high) - middle)

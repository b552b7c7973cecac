"""What crosses between scheduler and workers, in tables: bytes per step, by part, and how alike."""

from collections.abc import Callable

from engines.protocol import DIRECTIONS
from harness import format as fmt
from harness.experiment.result import CellResult, ExperimentResult
from harness.render.table import PlainTable, Row
from harness.report.summary import by_group, median, on_device
from harness.trial.message_parts import PARTS

_TITLES = dict(zip(DIRECTIONS, ("To the workers", "Back from the workers"), strict=True))


def messages_tables(
    result: ExperimentResult, name: Callable[[CellResult], str] = lambda cell: cell.id
) -> list[PlainTable]:
    """A table for each direction, of the cells whose messages were looked at; none without."""
    return [
        table for direction in DIRECTIONS if any((table := _table(result, direction, name)).groups)
    ]


def message_sizes(result: ExperimentResult) -> list[PlainTable]:
    """Both directions in one small table: exact, where the times beside it may settle nothing."""
    metrics = [f"{direction}_bytes_per_step" for direction in DIRECTIONS]
    groups = [
        [
            (cell.id, *(fmt.count(median(cell, metric)) for metric in metrics))
            for cell in group
            if metrics[0] in cell.metrics
        ]
        for group in by_group(result)
    ]
    if not any(groups):
        return []
    return [
        PlainTable(
            "Bytes between scheduler and workers, of the median step" + on_device(result.cells),
            ("cell", "to the\nworkers", "back"),
            [group for group in groups if group],
            "",
        )
    ]


def _table(
    result: ExperimentResult, direction: str, name: Callable[[CellResult], str]
) -> PlainTable:
    columns = (
        "bytes_per_step",
        "bytes_first",
        "bytes_last",
        *(f"bytes_{part}" for part in PARTS),
        "edit_distance",
        "edit_distance_first",
    )

    def row(cell: CellResult) -> Row:
        figures = (median(cell, f"{direction}_{column}") for column in columns)
        return (name(cell), *map(fmt.count, figures))

    groups = [
        [row(cell) for cell in group if f"{direction}_bytes_per_step" in cell.metrics]
        for group in by_group(result)
    ]
    return PlainTable(
        f"{_TITLES[direction]}, bytes per step" + on_device(result.cells),
        (
            "cell",
            "median\nstep",
            "first\nstep",
            "last\nstep",
            "para-\nmeters",
            "prompt",
            "output\nids",
            "names",
            "rest",
            "edits",
            "first\nedits",
        ),
        [group for group in groups if group],
        "by part: of the median step; edits: bytes to insert, delete or replace to make the next "
        "step's message of one, median over steps, and from the first to the second",
    )

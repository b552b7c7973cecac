"""An experiment's report: one comparison, cell by cell."""

from collections.abc import Iterator
from pathlib import Path

from harness.experiment.result import ExperimentResult
from harness.render.report import Listing, Picture, Report
from harness.report.answer import headline, sentences, sure_pairs, why_alone
from harness.report.bars import bars_table
from harness.report.conclusion import conclude
from harness.report.experiment_image import experiment_image
from harness.report.header import facts, varying_axes
from harness.report.messages import message_sizes, messages_tables
from harness.report.pivot import pivot_tables
from harness.report.steps_image import samples_image, stored_steps, timelines_image
from harness.report.summary import (
    apart_tables,
    cells_table,
    failure_lines,
    modes_tables,
    phases_table,
    step_tables,
    verdict_tables,
)
from harness.report.what_to_do import experiment_advice


def describe_experiment(result: ExperimentResult, folder: Path | None = None) -> Report:
    """All that is known of it; with timelines where ``folder`` keeps its trials' rows."""
    first = headline(result)
    alone = why_alone(result)
    above = [*alone, *sentences(result)]
    concluded = conclude(result) if result.is_complete else []
    said = [first, *above]
    pivots, cells = pivot_tables(result), cells_table(result)
    return Report(
        heading="gcbench compare",
        name=result.name,
        answer=first,
        advice=experiment_advice(result),
        tables=[*(pivots or [cells]), *message_sizes(result)],
        sentences=above,
        lists=[
            Listing("Not measured", [why for why in result.missing if why != first], is_bad=True),
            Listing("Trials without a result", failure_lines(result), is_bad=True),
            Listing("More conclusions", [c for c in concluded if not any(c in s for s in said)]),
            Listing("Not compared", [why for why in result.not_compared if why != first]),
            Listing("Left out", [] if alone else result.left_out),
            Listing("Notes", result.notes),
        ],
        sure=sure_pairs(result),
        more=[
            *([cells] if pivots else []),
            *step_tables(result),
            phases_table(result),
            *modes_tables(result),
            *messages_tables(result),
            *verdict_tables(result),
            *apart_tables(result),
        ],
        facts=facts(result),
        command=result.command,
        pictures=list(_pictures(result, folder)) if any(c.samples for c in result.cells) else [],
    )


def _pictures(result: ExperimentResult, folder: Path | None) -> Iterator[Picture]:
    yield Picture(
        "Host time and change",
        "Host time per step of each cell, split into own work and collections, and its change "
        "against the baseline with the 95 % interval; the grey band is what counts as the same.",
        lambda suffix: experiment_image(result, suffix),
        in_text=bars_table(result),
    )
    yield Picture(
        "Every round",
        "The samples of each cell, a dot per round, with the median.",
        lambda suffix: samples_image(result, suffix),
    )
    if folder and (steps := stored_steps(folder, varying_axes(result))):
        yield Picture(
            "Timelines",
            "How long each step of the first timed trial of a cell took, and when the collector "
            "ran.",
            lambda suffix: timelines_image(steps, suffix, result.name),
            is_dense=True,
        )

"""The page of an experiment: `gcbench report --html`."""

from collections.abc import Iterator
from pathlib import Path

from harness.experiment.result import ExperimentResult
from harness.report.answer import answer_pairs, headline, sentences
from harness.report.conclusion import conclude
from harness.report.experiment_image import experiment_image
from harness.report.header import header
from harness.report.markdown import answer_markdown
from harness.report.messages import messages_tables
from harness.report.page import Page, Picture, page_bytes
from harness.report.pivot import pivot_tables
from harness.report.steps_image import samples_image, stored_steps, timelines_image
from harness.report.summary import (
    apart_tables,
    cells_table,
    failure_lines,
    modes_tables,
    phases_table,
    verdict_tables,
)


def experiment_page(result: ExperimentResult, folder: Path) -> bytes:
    """All that is known of an experiment; with timelines where ``folder`` keeps its trials' rows.

    Raises ValueError where nothing was measured.
    """
    said = {headline(result), *sentences(result)}
    concluded = conclude(result) if result.is_complete else []
    workloads = ", ".join(each.name for each in result.workloads)
    return page_bytes(
        Page(
            title=f"gcbench: {result.name}",
            about=f"gcbench compare · {result.name} · {workloads}",
            headline=headline(result),
            sentences=sentences(result),
            tables=pivot_tables(result),
            sure=answer_pairs(result),
            pictures=list(_pictures(result, folder)),
            markdown=answer_markdown(result),
            more=[
                cells_table(result),
                phases_table(result),
                *modes_tables(result),
                *messages_tables(result),
                *verdict_tables(result),
                *apart_tables(result),
            ],
            lists=[
                ("More conclusions", [c for c in concluded if not any(c in each for each in said)]),
                ("Trials without a result", failure_lines(result)),
                ("Notes", result.notes),
            ],
            facts=header(result),
        )
    )


def _pictures(result: ExperimentResult, folder: Path) -> Iterator[Picture]:
    yield Picture(
        "Host time and change",
        "Host time per step of each cell, split into own work and collections, and its change "
        "against the baseline with the 95 % interval; the grey band is what counts as the same.",
        experiment_image(result, ".svg"),
    )
    yield Picture(
        "Every round",
        "The samples of each cell, a dot per round, with the median.",
        samples_image(result, ".svg"),
    )
    if steps := stored_steps(folder, result):
        yield Picture(
            "Timelines",
            "How long each step of the first timed trial of a cell took, and when the collector "
            "ran.",
            timelines_image(steps, ".png", result.name),
            "png",
        )

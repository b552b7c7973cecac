"""The page of an experiment in parts: `gcbench report --html`."""

from harness.experiment.experiment_file import PartsResult
from harness.report.conclusion import conclude
from harness.report.experiment_image import experiment_image
from harness.report.page import Page, Picture, page_bytes
from harness.report.parts import parts_table
from harness.report.parts_answer import (
    parts_failures,
    parts_headline,
    parts_markdown,
    parts_pairs,
    parts_sentences,
)
from harness.report.summary import cells_table


def parts_page(result: PartsResult) -> bytes:
    """The answer, the table of all parts, and of each part its picture and its cells.

    Raises ValueError where nothing of a part was measured.
    """
    pictures = [
        Picture(
            part.title,
            "Host time per step of each cell, split into own work and collections, and its change "
            "against the part's baseline with the 95 % interval.",
            experiment_image(part.result, ".svg"),
        )
        for part in result.parts
    ]
    tables = [(part.title, cells_table(part.result)) for part in result.parts]
    said = [
        (part.title, [*conclude(part.result), *part.result.notes])
        for part in result.parts
        if part.result.is_complete
    ]
    return page_bytes(
        Page(
            title=f"gcbench: {result.name}",
            about=f"gcbench compare · {result.name} · {len(result.parts)} parts",
            headline=parts_headline(result),
            sentences=parts_sentences(result),
            tables=[parts_table(result)],
            sure=parts_pairs(result, details=False),
            pictures=pictures,
            markdown=parts_markdown(result),
            more=[table._replace(title=f"{title}: {table.title}") for title, table in tables],
            lists=[("Trials without a result", parts_failures(result)), *said],
            facts=parts_pairs(result),
        )
    )

"""The page of a gate: `gcbench report --html`."""

from harness.report.gate import gate_failure_lines, gate_header, gate_markdown, gate_tables
from harness.report.gate_answer import gate_pairs, title
from harness.report.gate_image import gate_image
from harness.report.page import Page, Picture, page_bytes
from harness.tracking.gate.result import GateResult

_SURE = ("again", "machine", "detects")


def gate_page(result: GateResult) -> bytes:
    """All that is known of a gate."""
    try:
        pictures = [
            Picture(
                "What changed",
                "The counts that changed, and the change of host time per step with its 95 % "
                "interval and its causes; the grey band is what counts as the same.",
                gate_image(result, ".svg"),
            )
        ]
    except ValueError:
        pictures = []
    return page_bytes(
        Page(
            title=f"gcbench: {result.name}",
            about=f"gcbench gate · {result.name} · base {result.base.label}",
            headline=title(result),
            sentences=result.conclusions,
            tables=[],
            sure=[pair for pair in gate_pairs(result) if pair[0] in _SURE],
            pictures=pictures,
            markdown=gate_markdown(result),
            more=gate_tables(result),
            lists=[
                ("Not measured", result.missing),
                ("Trials without a result", gate_failure_lines(result)),
                ("Notes", result.notes),
            ],
            facts=gate_header(result),
        )
    )

"""The page of a night: `gcbench report --html`."""

from harness.report.nightly import (
    alert_lines,
    alert_table,
    alert_title,
    failed_lines,
    nightly_headline,
    nightly_markdown,
    nightly_pairs,
    suspicious_table,
)
from harness.report.nightly_image import has_picture, nightly_image
from harness.report.page import Page, Picture, page_bytes
from harness.tracking.nightly.result import NightlyResult

_SURE = ("measured", "series")


def nightly_page(result: NightlyResult) -> bytes:
    """All that is known of a night."""
    suspicious = suspicious_table(result.suspicious)
    pairs = nightly_pairs(result)
    pictures = (
        [
            Picture(
                "Around each step",
                "The series that changed most with each commit, a dot per commit, with the levels "
                "before and after it.",
                nightly_image(result, ".svg"),
            )
        ]
        if has_picture(result)
        else []
    )
    return page_bytes(
        Page(
            title=f"gcbench: the night of {result.started[:10]}",
            about=f"gcbench nightly · {result.machine} · {result.started[:10]}",
            headline=nightly_headline(result),
            sentences=[],
            tables=[alert_table(alert) for alert in result.alerts],
            sure=[pair for pair in pairs if pair[0] in _SURE],
            pictures=pictures,
            markdown=nightly_markdown(result),
            more=[suspicious] if suspicious else [],
            lists=[
                *(
                    (alert_title(alert), [*alert_lines(alert), *alert.command])
                    for alert in result.alerts
                ),
                ("Not measured", failed_lines(result)),
                ("Notes", [*result.notes, *result.problems]),
            ],
            facts=[pair for pair in pairs if pair[0] not in _SURE],
        )
    )

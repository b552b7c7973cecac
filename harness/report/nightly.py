"""A night's report: what changed and with which commit."""

from functools import partial

from harness.render.report import Listing, Picture, Report, Section, known
from harness.report.nightly_image import has_nightly_picture, nightly_image
from harness.report.nightly_words import (
    alert_lines,
    alert_pairs,
    alert_table,
    alert_title,
    failed_lines,
    measured_words,
    nightly_headline,
    suspicious_table,
)
from harness.report.series_words import counts_sentence
from harness.report.what_to_do import night_advice
from harness.tracking.nightly.result import Alert, NightlyResult


def describe_nightly(result: NightlyResult) -> Report:
    """All that is known of a night."""
    return Report(
        heading="gcbench nightly",
        name=f"the night of {result.started[:10]}",
        answer=nightly_headline(result),
        advice=night_advice(result),
        tables=suspicious_table(result.suspicious),
        sections=[_section(alert) for alert in result.alerts],
        lists=[
            Listing("Not measured", failed_lines(result), is_bad=True),
            Listing("Problems", result.problems, is_bad=True),
            Listing("Notes", result.notes),
        ],
        sure=known(
            [
                ("measured", measured_words(result)),
                ("series", counts_sentence(result.verdicts, result.triaged) or "none"),
                ("dashboard", result.dashboard),
            ]
        ),
        facts=[("machine", result.asv_machine)],
        command=result.command,
        pictures=[
            Picture(
                "Around each step",
                "The series that changed most with each commit, a dot per commit, with the levels "
                "before and after it.",
                partial(nightly_image, result),
            )
        ]
        if has_nightly_picture(result)
        else [],
    )


def _section(alert: Alert) -> Section:
    return Section(
        title=alert_title(alert),
        short=alert_pairs(alert),
        tables=[alert_table(alert)],
        lines=alert_lines(alert),
        commands=alert.command,
    )

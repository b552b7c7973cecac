"""What people read: tables for a terminal, the same as Markdown, and the page of metrics."""

from harness.report.doctor import doctor_table
from harness.report.lists import list_table
from harness.report.markdown import experiment_markdown, metrics_markdown
from harness.report.terminal import experiment_tables, make_console
from harness.report.trial import trial_table

__all__ = [
    "doctor_table",
    "experiment_markdown",
    "experiment_tables",
    "list_table",
    "make_console",
    "metrics_markdown",
    "trial_table",
]

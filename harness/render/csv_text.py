"""A report's tables as CSV, one below the other, for a spreadsheet."""

import csv
import io

from harness.render.report import Report


def report_csv(report: Report) -> str:
    """Each table's title, columns and rows, an empty line between two; cells as they are shown."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    inside = (table for section in report.sections for table in section.tables)
    for number, table in enumerate([*report.tables, *inside, *report.more]):
        if number:
            writer.writerow([])
        if table.title:
            writer.writerow([table.title])
        writer.writerow([" ".join(column.split("\n")) for column in table.columns])
        writer.writerows(row for group in table.groups for row in group)
    return text.getvalue()

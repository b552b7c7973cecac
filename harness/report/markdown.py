"""The same tables as GitHub Markdown, and the page that defines the metrics."""

from collections.abc import Iterable, Sequence

from harness.experiment.result import ExperimentResult
from harness.format import rough_percent
from harness.metrics import METRICS, Metric
from harness.report.answer import answer_pairs, headline, sentences
from harness.report.header import header
from harness.report.markdown_escape import escaped, escaped_inside
from harness.report.messages import messages_tables
from harness.report.pivot import pivot_tables
from harness.report.summary import (
    apart_tables,
    cells_table,
    failure_lines,
    modes_tables,
    verdict_tables,
)
from harness.report.table import PlainTable


def experiment_markdown(result: ExperimentResult) -> str:
    """The short report for a pull request, all else folded away below it."""
    inside = [pairs_markdown(header(result))]
    tables = (
        cells_table(result),
        *modes_tables(result),
        *messages_tables(result),
        *verdict_tables(result),
        *apart_tables(result),
    )
    inside += map(table_markdown, tables)
    if result.notes:
        inside.append(lines_markdown("Notes", result.notes))
    figures = "\n\n".join(inside)
    details = f"<details><summary>All figures</summary>\n\n{figures}\n\n</details>"
    return f"{answer_markdown(result)}\n\n{details}\n"


def answer_markdown(result: ExperimentResult) -> str:
    """What was found, the table of it, and how sure that is."""
    parts = [f"### gcbench compare: {escaped_inside(headline(result))}"]
    parts += [table_markdown(table) for table in pivot_tables(result)]
    if more := sentences(result):
        parts.append(lines_markdown("", more))
    if failures := failure_lines(result):
        parts.append(lines_markdown("Trials without a result", failures))
    parts.append(pairs_markdown([*answer_pairs(result), ("command", result.command)]))
    return "\n\n".join(parts)


def pairs_markdown(pairs: Sequence[tuple[str, str]]) -> str:
    """Labels and what belongs to them, as a list."""
    return "\n".join(f"- **{label}**: {escaped_inside(words)}" for label, words in pairs)


def lines_markdown(title: str, lines: Sequence[str]) -> str:
    """A list, under its title if it has one."""
    listed = "\n".join(f"- {escaped(line)}" for line in lines)
    return f"**{title}**\n\n{listed}" if title else listed


def table_markdown(table: PlainTable) -> str:
    """A plain table as Markdown, its groups of rows one below the other."""
    rows = [_line(map(escaped_inside, row)) for group in table.groups for row in group]
    rule = "|---" + "|---:" * (len(table.columns) - 1) + "|"
    body = "\n".join((_line(map(escaped_inside, table.columns)), rule, *rows))
    caption = [f"<sub>{escaped_inside(table.caption)}</sub>"] if table.caption else []
    return "\n\n".join((f"**{escaped_inside(table.title)}**", body, *caption))


def metrics_markdown() -> str:
    """docs/metrics.md, from the one table of metrics."""
    columns = ("metric", "unit", "better", "kind", "floor", "trials", "definition", "source")
    rows = [
        (f"`{m.name}`", m.unit, m.direction, m.kind, _floor(m), m.mode, m.definition, m.source)
        for m in METRICS.values()
    ]
    separator = "|---" * len(columns) + "|"
    own_markup = ([text.replace("|", "\\|").replace("<", "&lt;") for text in row] for row in rows)
    table = "\n".join((_line(columns), separator, *map(_line, own_markup)))
    return f"{_METRICS_HEAD}\n{table}\n"


def _floor(metric: Metric) -> str:
    relative = rough_percent(metric.noise_floor)
    return f"{relative}, {metric.least_change:g}" if metric.least_change else relative


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


_METRICS_HEAD = """\
# Metrics

<!-- Written from harness/metrics.py by `metrics_markdown`; a test compares the two. -->

Every figure gcbench publishes has one definition, in `harness/metrics.py`; this page is made
from it. JSON carries the units below, tables choose the readable one (`1.32 ms` for 0.00132 s).

- **better**: the side on which a change is an improvement; `neither` describes and never judges.
- **kind**: `exact` figures repeat to the digit in an exact cell (`null` device, one process, no
  clock) and are compared as they stand; `timing` figures get intervals, and so do exact ones
  wherever the cell is not exact.
- **floor**: a change up to it, relative and where a second number stands also in the unit, is one
  that no one would act upon; `gcbench gate` calls it `same`.
- **trials**: the mode of the trials that measure it. `timing` has the probe on and varies the
  phase of the collector's counters by seed; `counts` reads `gc.get_stats()` without a probe and
  in a fixed phase; the others turn the collector off. `tracked` counts tracked objects after
  each phase; `memory` traces every allocation; `leaks` counts what is left at the end; `opcodes`
  traces every bytecode; `wire` keeps every message between scheduler and workers.
- A metric that a trial cannot give is `null`, never zero. A 99th percentile is given from 662
  samples, a 99.9th from 6,636.
"""

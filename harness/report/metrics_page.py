"""docs/metrics.md: every metric with its definition, from the one table of them."""

from harness.format import rough_percent
from harness.metrics import METRICS, Metric
from harness.report.markdown import table_row


def metrics_markdown() -> str:
    """docs/metrics.md, from the one table of metrics."""
    columns = ("metric", "unit", "better", "kind", "floor", "trials", "definition", "source")
    rows = [
        (f"`{m.name}`", m.unit, m.direction, m.kind, _floor(m), m.mode, m.definition, m.source)
        for m in METRICS.values()
    ]
    separator = "|---" * len(columns) + "|"
    own_markup = ([text.replace("|", "\\|").replace("<", "&lt;") for text in row] for row in rows)
    table = "\n".join((table_row(columns), separator, *map(table_row, own_markup)))
    return f"{_METRICS_HEAD}\n{table}\n"


def _floor(metric: Metric) -> str:
    relative = rough_percent(metric.noise_floor)
    return f"{relative}, {metric.least_change:g}" if metric.least_change else relative


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

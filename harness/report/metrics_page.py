"""docs/metrics.md: every metric with its definition, from the one table of them."""

from harness.format import rough_percent
from harness.metrics import METRICS, Metric
from harness.render.markdown import table_row

_MODES = {
    "timing": "Times. The probe is on, and the phase of the collector's counters varies by seed.",
    "counts": "Collections and the like, by `gc.get_stats()`, without a probe, in a fixed phase.",
    "tracked": "Tracked objects after each phase, with the collector off.",
    "opcodes": "Every bytecode is traced, with the collector off.",
    "instructions": "Under valgrind, the collector off; equal trials differ by up to 0.13 %.",
    "memory": "Every allocation is traced, with the collector off.",
    "leaks": "What is left at the end, with the collector off.",
    "wire": (
        "Every message between scheduler and workers. Each `scheduler_output_…` has a\n"
        "`model_runner_output_…`, of the messages back."
    ),
}
_USUAL_FLOOR = "2 %"


def metrics_markdown() -> str:
    """docs/metrics.md, from the one table of metrics."""
    return "\n\n".join((_HEAD, *(_section(mode, note) for mode, note in _MODES.items()))) + "\n"


def _section(mode: str, note: str) -> str:
    columns = ("metric", "unit", "better", "floor", "definition")
    metrics = [m for m in METRICS.values() if m.mode == mode and not _is_way_back(m)]
    rows = [(f"`{m.name}`", m.unit, m.direction, _floor(m), _definition(m)) for m in metrics]
    separator = "|---" * len(columns) + "|"
    own_markup = ([text.replace("|", "\\|").replace("<", "&lt;") for text in row] for row in rows)
    table = "\n".join((table_row(columns), separator, *map(table_row, own_markup)))
    return f"## `{mode}`\n\n{note}\n\n{table}"


def _is_way_back(metric: Metric) -> bool:
    return metric.name.startswith("model_runner_output_")


def _floor(metric: Metric) -> str:
    relative = rough_percent(metric.noise_floor)
    if metric.least_change:
        return f"{relative}, {metric.least_change:g}"
    return "" if relative == _USUAL_FLOOR else relative


def _definition(metric: Metric) -> str:
    exact = "exact; " if metric.kind == "exact" and metric.mode == "timing" else ""
    return f"{exact}{metric.definition}"


_HEAD = f"""\
# Metrics

Every figure gcbench publishes has one definition, in `harness/metrics.py`; this page is made
from it, a table for each [mode of trials](method.md#modes). JSON carries the units
below. Latencies are those of `vllm bench serve`.

- **better**: the side on which a change is an improvement; `neither` describes and never judges.
- **exact or timing**: figures of all modes but `timing` repeat to the digit in an exact cell
  (`null` device, one process, no clock) and are compared as they stand. Times get intervals, and
  so do
  exact figures wherever the cell is not exact.
- **floor**: a change up to it, relative ({_USUAL_FLOOR} where none stands) and where a second
  number stands also in the unit, is one that no one would act upon; `gcbench gate` calls it `same`.
- A metric that a trial cannot give is `null`, never zero. A 99th percentile is given from 662
  samples, a 99.9th from 6,636."""

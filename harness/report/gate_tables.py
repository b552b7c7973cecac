"""What a gate measured, in tables and in lines: exact counts, host time, functions."""

from collections.abc import Iterator

from harness import format as fmt
from harness.experiment.result import Comparison
from harness.explain.changed_functions import ChangedFunction
from harness.explain.largest_changes import LargestChange
from harness.metrics import METRICS
from harness.render.report import known
from harness.render.table import PlainTable, Row
from harness.render.verdict_words import VERDICTS
from harness.report.function_words import largest_changes_table
from harness.report.gate_title import GATE_VERDICTS
from harness.report.gate_waivers import accepted_words, unused_words
from harness.report.header import machine_words
from harness.report.summary import trial_failure_lines
from harness.tracking.gate.result import (
    ExactChange,
    GateCell,
    GateResult,
    RequestChange,
    StallChange,
    TimingChange,
)

_WORST_FIRST = ("worse", "accepted", "better", "same")
_NAMED = 5
"""Functions that a sentence names."""
_OPEN = ("worse", "trade", "inconclusive", "not covered", "incomplete")
_VARYING = ["representation", "delivery", "gc", "release"]


def gate_facts(result: GateResult) -> list[tuple[str, str]]:
    """What the figures are of, as (label, words)."""
    trees = [("base", result.base), ("head", result.head)]
    return known(
        [
            *((label, f"{tree.label}  {tree.subject}") for label, tree in trees),
            ("outputs", _outputs_words(result)),
            ("machine", machine_words(result.machine)),
            ("workload", ", ".join(each.name for each in result.workloads)),
        ]
    )


def _outputs_words(result: GateResult) -> str:
    if not result.cells:
        return ""
    others = [cell.id for cell in result.cells if cell.other_outputs]
    return f"others under HEAD, accepted: {'; '.join(others)}" if others else "the same under both"


def gate_findings(result: GateResult) -> list[str]:
    """What was found, in sentences."""
    return [
        *result.conclusions,
        *(f"Accepted: {each}." for each in accepted_words(result)),
        *(f"Accepted, and not needed: {each}." for each in unused_words(result)),
        *not_told(result),
        *filter(None, [fmt.capitalised(not_run_words(result))]),
    ]


def not_run_words(result: GateResult) -> str:
    """The changed code that no cell has executed, in a sentence; "" where there is none."""
    if not result.not_run:
        return ""
    named = ", ".join(map(_named, result.not_run[:_NAMED]))
    more = len(result.not_run) - _NAMED
    others = f", and {more} more" if more > 0 else ""
    return f"no cell executed this changed code while it served requests: {named}{others}."


def _named(function: ChangedFunction) -> str:
    way = f"; {function.way} runs it" if function.way else ""
    return f"{function.name} ({function.file}:{function.line}{way})"


def not_told(result: GateResult) -> list[str]:
    """Counts that are no figures, with their cells."""
    return [f"{cell.id}: {sentence}" for cell in result.cells for sentence in cell.untold]


def gate_tables(result: GateResult) -> list[PlainTable]:
    """Exact metrics, then host time; a table each, only where there is something in it."""
    cells_with: dict[tuple[Row, ...], list[str]] = {}
    for cell in result.cells:
        if rows := tuple(map(_exact_row, _shown(cell))):
            cells_with.setdefault(rows, []).append(cell.id)
    tables = [
        PlainTable(
            f"Exact metrics of {'; '.join(ids)}",
            ("metric", "base", "head", "change", "verdict"),
            [rows],
        )
        for rows, ids in cells_with.items()
    ]
    if tables:
        same = sum(c.before == c.after for cell in result.cells for c in cell.exact)
        words = "figure is" if same == 1 else "figures are"
        caption = f"{same} other {words} the same to the digit and not shown."
        if any(change.verdict == "same" for cell in result.cells for change in _shown(cell)):
            caption += " = same: too small a change to act upon (floors: docs/metrics.md)."
        tables[-1] = tables[-1]._replace(caption=caption)
    functions: dict[tuple[LargestChange, ...], list[str]] = {}
    for cell in result.cells:
        if cell.functions:
            functions.setdefault(tuple(cell.functions), []).append(cell.id)
    tables += [
        largest_changes_table(f"What changed most, by function, of {'; '.join(ids)}", changes)
        for changes, ids in functions.items()
    ]
    timed = [(cell.id, cell.timing) for cell in result.cells if cell.timing]
    tables += [
        PlainTable(
            f"Host time per step of {name}",
            ("of", "base", "head", "change", "95 % interval", "verdict"),
            [list(_timing_rows(timing))],
        )
        for name, timing in timed
    ]
    if timed:
        tables[-1] = tables[-1]._replace(
            caption=f"{fmt.rounds(timing.steady.rounds for _, timing in timed)}. change: measured "
            "round by round; base is the median over rounds, head is base with the change. "
            "stalls: steps that take far longer than the other commit's same steps, and the "
            "longest of them; their change is in their share of the host time. same: within "
            f"±{fmt.percent(result.tolerance)}, stalls within half of that."
        )
    return tables


def gate_failure_lines(result: GateResult) -> list[str]:
    """The trials that gave no result, like ones together, by commit rather than by folder."""
    lines = trial_failure_lines(result.failures, _VARYING)
    trees = ((result.base.folder, "BASE"), (result.head.folder, "HEAD"))
    for folder, name in trees:
        lines = [line.replace(folder, name) for line in lines]
    return lines


def command_lines(result: GateResult) -> list[str]:
    """The command that measures a cell again, for each that changed or stayed open."""
    again = [cell.command for cell in result.cells if cell.verdict in _OPEN]
    is_all = len(again) == len(result.cells) and not result.missing
    return [result.command] if is_all and again else list(dict.fromkeys(again))


def _shown(cell: GateCell) -> list[ExactChange]:
    changed = [change for change in cell.exact if change.before != change.after]
    return sorted(changed, key=lambda change: _WORST_FIRST.index(change.verdict))


def _exact_row(change: ExactChange) -> Row:
    return (
        change.metric,
        value_words(change.before, change.unit),
        value_words(change.after, change.unit),
        _difference(change),
        GATE_VERDICTS[change.verdict],
    )


def value_words(value: float, unit: str) -> str:
    """A count with what it counts where that are bytes."""
    return fmt.bytes_(value) if unit == "B" else fmt.count(value)


def _difference(change: ExactChange) -> str:
    if not change.before:
        return "new"
    share = change.after / change.before - 1
    return fmt.percent(share, signed=True) if share < 10 else f"×{fmt.number(share + 1)}"


def _timing_rows(timing: TimingChange) -> Iterator[Row]:
    show = fmt.seconds
    yield "usual step", show(timing.before), show(timing.after), *_judged(timing.steady)
    yield "mean", show(timing.mean_before), show(timing.mean_after), *_judged(timing.mean)
    if (stalls := timing.stalls) is not None:
        before = _stalls(stalls.before, stalls.longest_before)
        yield "stalls", before, _stalls(stalls.after, stalls.longest_after), *_judged(stalls)
    yield from map(_request_row, timing.requests)


def _request_row(found: RequestChange) -> Row:
    metric = METRICS[found.change.metric]
    before, after = (fmt.with_unit(value, metric.unit) for value in (found.before, found.after))
    return metric.name, before, after, *_judged(found.change)


def _judged(found: Comparison | StallChange) -> Row:
    change = fmt.percent(found.ratio - 1, signed=True)
    return change, fmt.interval(found.ci95), VERDICTS[found.verdict]


def _stalls(count: int, longest: float) -> str:
    return f"{fmt.count(count)}, {fmt.seconds(longest)}" if count else "none"

"""A gate's report: what changed in numbers and in words, for a terminal or a pull request."""

from collections.abc import Iterator, Sequence

from harness import format as fmt
from harness.experiment.result import Comparison
from harness.explain.largest_changes import LargestChange
from harness.metrics import METRICS
from harness.report.function_words import largest_changes_table
from harness.report.gate_power import power_words, settles_no_times
from harness.report.header import machine_words
from harness.report.markdown import table_markdown
from harness.report.markdown_escape import code_block, code_span, escaped
from harness.report.power import surroundings_words
from harness.report.summary import trial_failure_lines
from harness.report.table import PlainTable, Row
from harness.report.verdict_words import VERDICTS
from harness.tracking.gate.result import (
    ExactChange,
    GateCell,
    GateResult,
    RequestChange,
    StallChange,
    TimingChange,
)

_HEADLINES = {
    "worse": "▼ worse: HEAD costs more than BASE",
    "better": "▲ better: HEAD costs less than BASE",
    "same": "= same: HEAD costs what BASE does",
    "inconclusive": "? inconclusive: exact counts are the same, times cannot tell",
    "incomplete": "✗ incomplete, no verdict: not everything could be measured",
}
_PARTIAL = "= same where it ran: HEAD costs there what BASE does"
_COUNTED_ALONE = ", by exact counts alone"
_UNTIMED = "? inconclusive: times cannot tell, and nothing here can be counted exactly"
_WORST_FIRST = ("worse", "better", "same")
_NAMED = 5
"""Functions that a sentence names."""
_OPEN = ("worse", "inconclusive", "incomplete")
_VARYING = ["representation", "delivery", "gc", "release"]


def gate_header(result: GateResult) -> list[tuple[str, str]]:
    """What the figures are of, as (label, words)."""
    trees = [("base", result.base), ("head", result.head)]
    surroundings = result.surroundings
    lines = [
        ("attention", settles_no_times(result)),
        ("surroundings", "" if surroundings is None else surroundings_words(surroundings)),
    ]
    lines += [(label, f"{tree.label}  {tree.subject}") for label, tree in trees]
    lines += [
        ("outputs", "the same under both" if result.cells else ""),
        ("detects", power_words(result)),
        ("machine", machine_words(result.machine)),
        ("workload", ", ".join(each.name for each in result.workloads)),
        ("command", result.command),
    ]
    return [(label, words) for label, words in lines if words]


def headline(result: GateResult) -> str:
    """The verdict, in a line; what was not measured in full is never called same or better."""
    if not result.cells:
        return "✗ incomplete, no verdict: nothing could be measured"
    if result.verdict == "incomplete":
        return _HEADLINES["incomplete"]
    if result.verdict == "inconclusive" and not any(cell.exact for cell in result.cells):
        return _UNTIMED
    if is_partial(result):
        return _PARTIAL + ("" if any(cell.timing for cell in result.cells) else _COUNTED_ALONE)
    counted = "" if any(cell.timing for cell in result.cells) else _COUNTED_ALONE
    missing = "; not everything could be measured" if result.missing else ""
    return _HEADLINES[result.verdict] + counted + missing


def findings(result: GateResult) -> list[str]:
    """What belongs under the headline: what was found, and what could not be."""
    return [
        *result.conclusions,
        *not_told(result),
        *filter(None, [fmt.capitalised(not_run_words(result))]),
        *result.missing,
    ]


def is_partial(result: GateResult) -> bool:
    """Whether all is the same, and of what was changed not all has run."""
    return result.verdict == "same" and bool(result.not_run)


def not_run_words(result: GateResult) -> str:
    """The changed functions that no cell has executed, in a sentence; "" where there are none."""
    if not result.not_run:
        return ""
    named = ", ".join(f"{each.name} ({each.file}:{each.line})" for each in result.not_run[:_NAMED])
    more = len(result.not_run) - _NAMED
    others = f", and {more} more" if more > 0 else ""
    these = "this changed function" if len(result.not_run) == 1 else "these changed functions"
    return f"no cell executed {these} while it served requests: {named}{others}."


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


def gate_markdown(result: GateResult) -> str:
    """The report for a pull request: verdict and sentences first, figures folded away.

    What commits and their code say is shown as it stands: no markup comes of it.
    """
    parts = [f"### gcbench gate: {headline(result)}"]
    if attention := settles_no_times(result):
        parts.append(f"**Attention**: {escaped(attention)}")
    titled = (("", findings(result)), ("Trials without a result", gate_failure_lines(result)))
    parts += [_listed(title, lines) for title, lines in titled if lines]
    parts.append(
        "\n".join(
            f"- **{label}**: {code_span(tree.label)} {code_span(tree.subject)}".rstrip()
            for label, tree in (("base", result.base), ("head", result.head))
        )
    )
    if result.notes:
        parts.append(_listed("Notes", result.notes))
    if again := command_lines(result):
        parts.append("**To see it again**\n\n" + code_block(again))
    if tables := gate_tables(result):
        inside = "\n\n".join(map(table_markdown, tables))
        parts.append(f"<details><summary>Figures</summary>\n\n{inside}\n\n</details>")
    parts.append(f"<sub>{escaped(machine_words(result.machine))}</sub>")
    return "\n\n".join(parts) + "\n"


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


def _listed(title: str, lines: Sequence[str]) -> str:
    listed = "\n".join(f"- {escaped(line)}" for line in lines)
    return f"**{title}**\n\n{listed}" if title else listed


def _shown(cell: GateCell) -> list[ExactChange]:
    changed = [change for change in cell.exact if change.before != change.after]
    return sorted(changed, key=lambda change: _WORST_FIRST.index(change.verdict))


def _exact_row(change: ExactChange) -> Row:
    return (
        change.metric,
        value_words(change.before, change.unit),
        value_words(change.after, change.unit),
        _difference(change),
        VERDICTS[change.verdict],
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

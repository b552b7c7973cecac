"""Two stored experiments against each other, for a terminal."""

from collections import Counter

from rich.console import Console

from harness import format as fmt
from harness.experiment.diff import DiffResult
from harness.report.power import detects, detects_words
from harness.report.summary import direction_words, metric_words
from harness.report.table import PlainTable
from harness.report.terminal import print_lines, print_pairs, print_table, print_title
from harness.report.verdict_words import SIGNS, VERDICTS
from harness.statistics.verdict import Verdict

_BETWEEN = (
    "noise within the runs only: what differed on the machine between the two runs is not in the "
    "intervals; gcbench gate and compare --release interleave both sides"
)

_WORST_FIRST: tuple[Verdict, ...] = ("worse", "better", "same", "inconclusive")


def diff_headline(result: DiffResult) -> str:
    """How many cells changed, worse ones first."""
    found = Counter(each.verdict for each in result.comparisons)
    order = [each for each in _WORST_FIRST if found[each]]
    counted = ", ".join(f"{found[each]} {each}" for each in order)
    return f"{SIGNS[order[0]]} {counted}: {result.head} against {result.base}"


def diff_tables(result: DiffResult) -> list[PlainTable]:
    """A table a metric that decides."""
    tables = []
    for metric in dict.fromkeys(each.metric for each in result.comparisons):
        rows = [
            (
                each.candidate,
                fmt.percent(each.ratio - 1, signed=True),
                fmt.interval(each.ci95),
                VERDICTS[each.verdict],
                detects(each.mde),
            )
            for each in result.comparisons
            if each.metric == metric
        ]
        title = f"{fmt.capitalised(metric_words(metric))}, {direction_words(metric)}"
        columns = ("cell", "change", "95 % interval", "verdict", "detects")
        caption = f"same: within ±{fmt.rough_percent(result.tolerance)}"
        tables.append(PlainTable(title, columns, [rows], caption))
    return tables


def diff_report(result: DiffResult, console: Console) -> None:
    """Print what changed, and what was not compared."""
    print_title(diff_headline(result), "", console)
    for table in diff_tables(result):
        print_table(table, console)
    print_lines("Not compared", result.not_compared, console)
    console.print()
    print_pairs([("detects", detects_words(result.comparisons)), ("covers", _BETWEEN)], console)

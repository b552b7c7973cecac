"""Two stored experiments against each other, for a terminal."""

from collections import Counter

from harness import format as fmt
from harness.experiment.diff import DiffResult
from harness.render.report import Listing, Report, known
from harness.render.table import PlainTable
from harness.render.verdict_words import SIGNS, VERDICTS
from harness.report.power import detects, detects_words, too_few_rounds
from harness.report.summary import direction_words, metric_words
from harness.statistics.paired_ratio import MIN_ROUNDS
from harness.statistics.verdict import Verdict

_BETWEEN = (
    "noise from round to round; what drifts on the machine from one side to the other is not in "
    "the intervals, unless the sides took turns, as gcbench gate and compare --release make them"
)
_WITHIN_ONE = (
    "noise within one run of each side, and the next start of a server may differ by more: for a "
    f"verdict, measure {MIN_ROUNDS} or more of each in turn, each on a server started anew, and "
    "name them all: gcbench report NEW,NEW,… --against OLD,OLD,…"
)

_WORST_FIRST: tuple[Verdict, ...] = ("worse", "better", "same", "inconclusive")


def _headline(result: DiffResult) -> str:
    """How many cells changed, worse ones first."""
    found = Counter(each.verdict for each in result.comparisons)
    order = [each for each in _WORST_FIRST if found[each]]
    counted = ", ".join(f"{found[each]} {each}" for each in order)
    return f"{SIGNS[order[0]]} {counted}: {result.head} against {result.base}"


def _tables(result: DiffResult) -> list[PlainTable]:
    """A table a metric that decides."""
    tables = []
    for metric in dict.fromkeys(each.metric for each in result.comparisons):
        rows = [
            (
                each.candidate,
                fmt.percent(each.ratio - 1, signed=True),
                fmt.interval(each.ci95),
                VERDICTS[each.verdict],
                detects(each.mde) if each.rounds >= MIN_ROUNDS else "–",
            )
            for each in result.comparisons
            if each.metric == metric
        ]
        title = f"{fmt.capitalised(metric_words(metric))}, {direction_words(metric)}"
        columns = ("cell", "change", "95 % interval", "verdict", "detects")
        caption = f"same: within ±{fmt.rough_percent(result.tolerance)}"
        tables.append(PlainTable(title, columns, [rows], caption))
    return tables


def describe_diff(result: DiffResult) -> Report:
    """What changed from one experiment to the other, and what was not compared."""
    return Report(
        heading="gcbench report",
        name=result.name,
        answer=_headline(result),
        tables=_tables(result),
        lists=[Listing("Not compared", result.not_compared, is_bad=True)],
        sure=known([("detects", detects_words(result.comparisons)), ("covers", _covers(result))]),
    )


def _covers(result: DiffResult) -> str:
    """What noise is in the intervals."""
    if max(each.rounds for each in result.comparisons) == 1:
        return _WITHIN_ONE
    few = too_few_rounds(result.comparisons)
    return f"{_BETWEEN}; {few}" if few else _BETWEEN

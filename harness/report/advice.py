"""What `gcbench advise` shows: the advice, what it is worth and what it costs."""

from collections.abc import Iterator

from harness import format as fmt
from harness.experiment.advice import Advice
from harness.experiment.result import CellResult, Comparison, ExperimentResult
from harness.metrics import METRICS
from harness.render.report import Listing, Report
from harness.report.answer import sure_pairs
from harness.report.header import facts
from harness.report.plausible import implausible_gains
from harness.report.summary import failure_lines, median, verdict_tables


def describe_advice(advice: Advice) -> Report:
    """What to set, or that nothing helps; what it is worth and what it costs."""
    verified = advice.verified
    looks = {"First look": advice.tried, "Measured afresh": verified}
    found = [(look, result) for look, result in looks.items() if result is not None]
    is_judged = advice.tried.comparisons and (verified is None or verified.comparisons)
    answer, *more = _sentences(advice) if is_judged else ["✗ Nothing could be judged."]
    return Report(
        heading="gcbench advise",
        name=advice.name,
        answer=answer,
        sentences=more,
        snippet=advice.snippet,
        tables=[
            table._replace(title=f"{look}: {table.title}")
            for look, result in found
            for table in verdict_tables(result)
        ],
        lists=[
            Listing("Notes", advice.notes),
            *(
                each
                for look, result in found
                for each in (
                    Listing(f"{look}: trials without a result", failure_lines(result), is_bad=True),
                    Listing(f"{look}: notes", result.notes),
                )
            ),
        ],
        sure=sure_pairs(verified or advice.tried),
        facts=facts(verified or advice.tried),
        command=advice.command,
    )


def _sentences(advice: Advice) -> list[str]:
    """The answer first: what to set, or that nothing helps."""
    return [*_answer(advice), *_implausible(advice), *_bound(advice), *_prices(advice)]


def _answer(advice: Advice) -> Iterator[str]:
    tried, verified = advice.tried, advice.verified
    baseline = tried.comparisons[0].baseline if tried.comparisons else ""
    if verified is None:
        yield f"Keep {baseline}: nothing that was tried looked better."
        return
    (again,) = verified.comparisons
    if advice.recommends:
        yield (
            f"Use {again.candidate}: {_changed(again)} against {baseline}, measured afresh over "
            f"{again.rounds} rounds."
        )
    else:
        yield (
            f"Keep {baseline}: {again.candidate} looked best, but measured afresh it is "
            f"{again.verdict} ({_changed(again)})."
        )


def _implausible(advice: Advice) -> list[str]:
    verified = advice.verified
    if verified is None:
        return []
    cells = {cell.id: cell for cell in verified.cells}
    return implausible_gains(verified.comparisons, cells, verified.tolerance)


def _changed(comparison: Comparison) -> str:
    low, high = (fmt.percent(each - 1, signed=True) for each in comparison.ci95)
    change = fmt.percent(comparison.ratio - 1, signed=True)
    return f"{METRICS[comparison.metric].name} {change} (95 %: {low} to {high})"


def _bound(advice: Advice) -> Iterator[str]:
    if advice.bound is None:
        return
    metric = advice.tried.comparisons[0].metric
    yield (
        f"With the collector off altogether {metric} changed by "
        f"{fmt.percent(advice.bound - 1, signed=True)} in the first look: noise aside, no setting "
        "of it can bring more."
    )


def _prices(advice: Advice) -> Iterator[str]:
    """What the recommended cell takes more of than the baseline."""
    if not advice.recommends or advice.verified is None:
        return
    before, after = _sides(advice.verified)
    paid = [
        f"{words} {fmt.with_unit(now, unit)} ({fmt.with_unit(then, unit)} before)"
        for metric, words in (("gc_pause_max", "longest pause"), ("peak_rss", "memory at the peak"))
        if (then := median(before, metric)) is not None
        and (now := median(after, metric)) is not None
        and (unit := METRICS[metric].unit)
    ]
    if paid:
        yield f"Its price: {', '.join(paid)}."
    garbage = median(after, "cyclic_garbage_per_step")
    if garbage is None:
        yield "Cyclic garbage was not counted; gcbench advise --device null counts it."
    elif garbage:
        yield (
            f"A step leaves {fmt.count(garbage)} objects that only a collection frees, so the "
            "rarer it runs, the more memory they hold."
        )
    else:
        yield "No step leaves garbage that only a collection frees."


def _sides(result: ExperimentResult) -> tuple[CellResult, CellResult]:
    (comparison,) = result.comparisons
    cells = {cell.id: cell for cell in result.cells}
    return cells[comparison.baseline], cells[comparison.candidate]

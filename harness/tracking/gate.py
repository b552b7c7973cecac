"""The verdict on a commit: exact metrics as they stand, host time by its rounds, cell by cell."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from harness.experiment import Verdict
from harness.grid import AXES, is_exact
from harness.metrics import METRICS
from harness.outcomes import Trials
from harness.statistics import FEWEST_PAIRS
from harness.summarise import difference
from harness.tracking.gate_plan import DECIDES, EXACT_MODES, Pair
from harness.tracking.gate_result import ExactChange, GateCell, TimingChange

FIGURES = (
    "request_throughput", "output_throughput", "seconds_per_request", "tpot_median", DECIDES,
)  # fmt: skip


def exact_changes(trials: Trials, each: Pair) -> list[ExactChange]:
    """Each exact metric that both commits gave, in the table's order.

    Collections are left out where equal trials did not count alike.
    """
    if not is_exact(each.base):
        return []
    steady = not unsteady(trials, each)
    changes = []
    for metric in METRICS.values():
        if metric.kind != "exact" or metric.direction == "neither":
            continue
        before, after = (trials.counted_value(cell, metric) for cell in (each.base, each.head))
        if before is None or after is None or (metric.mode == "counts" and not steady):
            continue
        verdict: Literal["better", "worse", "same"] = "same"
        if metric.differs(before, after):
            verdict = "better" if (after > before) == (metric.direction == "higher") else "worse"
        changes.append(
            ExactChange(
                metric=metric.name,
                unit=metric.unit,
                direction=metric.direction,
                before=before,
                after=after,
                verdict=verdict,
            )
        )
    return changes


def different_work(trials: Trials, each: Pair) -> str:
    """What the commits' trials should have agreed in and do not, or ""."""
    results = [result for cell in each[1:] for result in trials.timings.get(cell, {}).values()]
    results += [result for (_, cell), result in trials.counted.items() if cell in each[1:]]
    whole = [result for result in results if result.mode not in ("tracked", "opcodes")]
    return next((found for result in whole if (found := difference(result, whole[0]))), "")


def unsteady(trials: Trials, each: Pair) -> bool:
    """Whether equal trials of an exact cell counted differently."""
    return any(
        len(trials.counts.get(cell, ())) > 1 and is_exact(cell) for cell in (each.base, each.head)
    )


def _one_sided(trials: Trials, each: Pair) -> Iterator[str]:
    """A sentence for each trial that counts and gave a result under one commit alone."""
    for mode in EXACT_MODES:
        base, head = (trials.counted_in(mode, cell) for cell in (each.base, each.head))
        if (base is None) != (head is None):
            side = "BASE" if base is None else "HEAD"
            yield f"{each.id}: no result of {side} in mode {mode}."


class Judged(NamedTuple):
    """``missing``: a sentence for each pair of which something was not measured."""

    cells: list[GateCell]
    missing: list[str]
    notes: list[str]


def judge(
    pairs: Sequence[Pair],
    counted: Trials,
    timed: Trials | None,
    timings: Mapping[Pair, TimingChange],
    again: Callable[[Pair], str],
) -> Judged:
    """What there is to say of each pair; ``timed`` is None where nothing was to be timed."""
    judged = Judged([], [], [])
    for each in pairs:
        what = different_work(counted, each) or (different_work(timed, each) if timed else "")
        if what:
            judged.missing.append(
                f"{each.id}: HEAD produces other {what} than BASE; different work has no ratio."
            )
            continue
        exact, timing = exact_changes(counted, each), timings.get(each)
        judged.missing.extend(_one_sided(counted, each))
        if timed is not None and timing is None:
            judged.missing.append(f"{each.id}: fewer than {FEWEST_PAIRS} timed rounds.")
        if not exact and (is_exact(each.base) or timing is None):
            why = (
                "nothing could be counted"
                if is_exact(each.base)
                else "its counts need not repeat, for it has a clock or a second process, and it "
                "was not timed"
            )
            judged.missing.append(f"{each.id}: {why}.")
        if unsteady(counted, each):
            judged.notes.append(
                f"{each.id}: trials that should count alike did not; collections are left out."
            )
        if exact or timing:
            judged.cells.append(
                GateCell(
                    id=each.id,
                    axes={axis: getattr(each.base, axis) for axis in AXES if axis != "release"},
                    exact=exact,
                    timing=timing,
                    verdict=_verdict(exact, timing),
                    again=again(each),
                    figures=_figures(timed, each) if timed else {},
                )
            )
    return judged


def _figures(timed: Trials, each: Pair) -> dict[str, float]:
    figures = {}
    for name in FIGURES:
        rounds = timed.timings[each.head].values()
        samples = [value for result in rounds if (value := result.metrics.get(name)) is not None]
        if samples:
            figures[name] = float(np.median(samples))
    return figures


def _verdict(exact: Sequence[ExactChange], timing: TimingChange | None) -> Verdict:
    """Time decides where it can; an exact loss counts unless time was won."""
    timed = timing.comparison.verdict if timing else None
    found = {change.verdict for change in exact}
    if timed == "worse" or ("worse" in found and timed != "better"):
        return "worse"
    if timed == "better" or "better" in found:
        return "better"
    return "inconclusive" if timed == "inconclusive" else "same"


def overall(cells: Sequence[GateCell]) -> Verdict:
    """The verdict on the commit: its worst cell's, and better only where nothing is worse."""
    found = {cell.verdict for cell in cells}
    order: tuple[Verdict, ...] = ("worse", "better", "inconclusive", "same")
    return next((verdict for verdict in order if verdict in found), "inconclusive")

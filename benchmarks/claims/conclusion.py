"""Whether a figure of a result is what somebody has said it is."""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from benchmarks.claims.bounds import Bounds
from benchmarks.claims.finding import Finding, Settled, judged
from harness.axes import Value
from harness.experiment.result import CellResult, Comparison, ExperimentResult
from harness.metrics import METRICS
from harness.statistics.paired_ratio import FEWEST_PAIRS, MIN_ROUNDS, paired_ratio
from harness.statistics.verdict import Verdict

Results = Mapping[str, ExperimentResult]
"""What a command has measured, by the title of the part; "" where the command has no parts."""


class Conclusion(Bounds, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A figure of a ``measurement``, and what it has to be.

    The figure is ``metric`` in ``cell``, divided by the metric ``per`` there, and all of it
    divided by the same ``against`` another cell. A cell is named by the axes that tell it from
    the others, ``part`` is the title of one of an experiment's parts. It has bounds, or the
    comparison of the two has to have the ``verdict``.
    """

    measurement: str
    metric: str
    cell: dict[str, Value] = {}
    against: dict[str, Value] | None = None
    per: str = ""
    part: str = ""
    verdict: Verdict | None = None


def settle(conclusion: Conclusion, results: Results) -> Finding:
    """What ``results`` say: a claim is held, or is not, where the whole interval agrees.

    Raises ValueError where they have no such part, or not one such cell.
    """
    result = results.get(conclusion.part)
    if result is None:
        raise ValueError(f"there is no part {conclusion.part!r}: {', '.join(results)}")
    cell = _find(conclusion.cell, result)
    found = _settle(conclusion, cell, result)
    is_modelled = cell.axes.get("device") == "modelled"
    return msgspec.structs.replace(found, is_modelled=is_modelled)


def _settle(conclusion: Conclusion, cell: CellResult, result: ExperimentResult) -> Finding:
    other = None if conclusion.against is None else _find(conclusion.against, result)
    compared = None if other is None else _comparison(conclusion.metric, cell, other, result)
    if conclusion.verdict is not None:
        return _by_verdict(conclusion.verdict, compared)
    if compared is not None and not conclusion.per:
        return _by_interval(conclusion, compared.ratio, compared.ci95)
    figure = _figure(conclusion, cell)
    if other is not None:
        figure = _over(figure, _figure(conclusion, other))
    known = [value for value in figure.values if value is not None]
    if figure.is_exact and known:
        return _by_interval(conclusion, known[0], (known[0], known[0]))
    if len(known) < FEWEST_PAIRS:
        reason = f"an interval takes {FEWEST_PAIRS} rounds, this run has {len(known)}"
        return Finding(settled="not settled", reason=reason)
    if min(known) <= 0:
        return Finding(settled="not settled", reason="an interval needs figures above 0")
    ratio = paired_ratio([1.0] * len(known), known)
    return _by_interval(conclusion, ratio.ratio, ratio.ci95)


def _find(axes: Mapping[str, Value], result: ExperimentResult) -> CellResult:
    found = [
        cell
        for cell in result.cells
        if all(cell.axes.get(axis) == value for axis, value in axes.items())
    ]
    if len(found) != 1:
        named = ", ".join(f"{axis} = {value}" for axis, value in axes.items()) or "no axis"
        raise ValueError(f"{len(found)} cells answer to {named}; name one")
    return found[0]


def _comparison(
    metric: str, cell: CellResult, other: CellResult, result: ExperimentResult
) -> Comparison | None:
    """That of the two, where this metric decided: they took turns for it."""
    wanted = (metric, cell.id, other.id)
    return next(
        (
            each
            for each in result.comparisons
            if (each.metric, each.candidate, each.baseline) == wanted
        ),
        None,
    )


def _by_verdict(wanted: Verdict, compared: Comparison | None) -> Finding:
    if compared is None:
        return Finding(settled="not settled", reason="the two were not compared")
    settled: Settled = "held" if compared.verdict == wanted else "not held"
    reason = ""
    if compared.verdict == "inconclusive" != wanted:
        settled, reason = "not settled", "the interval leaves no verdict"
        if compared.rounds < MIN_ROUNDS:
            reason = f"a verdict takes {MIN_ROUNDS} rounds, this run has {compared.rounds}"
    return Finding(
        settled=settled,
        value=compared.ratio,
        ci95=compared.ci95,
        verdict=compared.verdict,
        reason=reason,
    )


def _by_interval(conclusion: Conclusion, value: float, ci95: tuple[float, float]) -> Finding:
    return judged(conclusion.limits(is_ratio=conclusion.against is not None), value, ci95)


class _Figure(NamedTuple):
    """By round; one that ``is_exact`` is the same in each, and stands once."""

    values: list[float | None]
    is_exact: bool = False


def _figure(conclusion: Conclusion, cell: CellResult) -> _Figure:
    figure = _measured(conclusion.metric, cell)
    return _over(figure, _measured(conclusion.per, cell)) if conclusion.per else figure


def _measured(name: str, cell: CellResult) -> _Figure:
    """Samples of a metric. A count is exact too where several rounds all gave the same, and where
    a trial of its own has counted it, once for all rounds.
    """
    found = cell.metrics.get(name)
    if found is None:
        return _Figure([])
    metric = METRICS[name]
    is_same = metric.kind == "exact" and len(set(found.samples)) == 1
    has_own_trial = metric.mode not in ("timing", "counts")
    if found.kind == "exact" or (is_same and (has_own_trial or len(found.samples) > 1)):
        return _Figure(found.samples[:1], is_exact=True)
    return _Figure(found.samples)


def _over(a: _Figure, b: _Figure) -> _Figure:
    """Round by round; None where either is missing or the divisor is 0."""
    rounds = max(len(a.values), len(b.values))
    above, below = (f.values * rounds if f.is_exact else f.values for f in (a, b))
    pairs = zip(above, below, strict=False)
    values = [x / y if x is not None and y else None for x, y in pairs]
    return _Figure(values, a.is_exact and b.is_exact)

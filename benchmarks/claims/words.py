"""How a claim's ruling, its figure and its condition read, on the page and on a terminal."""

from collections import Counter
from collections.abc import Mapping, Sequence

from benchmarks.claims.bounds import is_change
from benchmarks.claims.conclusion import Conclusion
from benchmarks.claims.document import Reading
from benchmarks.claims.finding import Finding, together
from benchmarks.claims.ledger import Claim
from harness import format as fmt
from harness.axes import Value
from harness.metrics import METRICS
from harness.render.verdict_words import VERDICTS
from harness.statistics.verdict import Verdict

RULINGS = ("held", "not held", "needs a GPU", "not testable here", "not settled")
"""In the order in which they are counted; a ledger should have none of the last."""


_NO_WIDTH = 1e-3
"""Part of a figure below which its interval is not worth a word."""


def ruling(claim: Claim, stored: Mapping[str, Sequence[Finding]]) -> str:
    """What the ledger says of a claim: computed where there is a stored result."""
    if claim.id in stored:
        return together(stored[claim.id])
    return claim.declared or "not settled"


def counted(rulings: Sequence[str]) -> str:
    """ "12 held, 7 not held, 3 need a GPU"."""
    number = Counter(rulings)
    words = {
        "needs a GPU": ("needs a GPU", "need a GPU"),
        "not testable here": ("cannot be tested here",) * 2,
    }
    return ", ".join(
        f"{number[name]} {words.get(name, (name, name))[number[name] > 1]}"
        for name in RULINGS
        if number[name]
    )


def figures_words(conditions: Sequence[Conclusion | Reading], findings: Sequence[Finding]) -> str:
    """The figure of each condition; – where nothing was found."""
    pairs = zip(conditions, findings, strict=False)
    return "; ".join(figure_words(each, found) for each, found in pairs) or fmt.MISSING


def figure_words(wanted: Conclusion | Reading, finding: Finding) -> str:
    """A figure with its interval: "+4.9 % (+3.1 % to +6.7 %)", "453 B"; whether it is modelled."""
    if finding.value is None:
        return fmt.MISSING
    value = _with_unit(wanted, finding.value)
    words = [VERDICTS[finding.verdict]] if finding.verdict else []
    words.append(value)
    low, high = finding.ci95 or (finding.value, finding.value)
    reach = f"{_with_unit(wanted, low)} to {_with_unit(wanted, high)}"
    if high - low > _NO_WIDTH * abs(finding.value) and reach != f"{value} to {value}":
        words.append(f"({reach})")
    return " ".join(words) + ", modelled" * finding.is_modelled


def condition_words(wanted: Conclusion | Reading) -> str:
    """What has to be: "tracked_peak_per_step of flat_arrays is -20 % or less against tensor"."""
    if isinstance(wanted, Reading):
        other = f" against {' · '.join(wanted.against)}" if wanted.against else ""
        return f"{' · '.join(wanted.figure)} is {_bounds_words(wanted)}{other}"
    per = f" per {wanted.per}" if wanted.per else ""
    cells = _cell_words(wanted.cell)
    of = f" of {cells}" if cells else ""
    other = _cell_words(wanted.against or {})
    if wanted.verdict is not None:
        bounds = f"{_THAN[wanted.verdict]} that of {other}"
    else:
        bounds = _bounds_words(wanted) + (f" against {other}" if other else "")
    return f"{wanted.metric}{per}{of} is {bounds}"


_THAN: dict[Verdict, str] = {
    "better": "better than",
    "worse": "worse than",
    "same": "the same as",
    "inconclusive": "not to be told from",
}


def _bounds_words(wanted: Conclusion | Reading) -> str:
    if wanted.about is not None:
        values = wanted.about if isinstance(wanted.about, tuple) else (wanted.about,)
        return f"within a tenth of {' to '.join(_bound_words(wanted, each) for each in values)}"
    least, most = (
        "" if bound is None else _bound_words(wanted, bound)
        for bound in (wanted.at_least, wanted.at_most)
    )
    if least and most:
        return least if least == most else f"between {least} and {most}"
    return f"{least} or more" if least else f"{most} or less"


def _bound_words(wanted: Conclusion | Reading, bound: float) -> str:
    """As round as somebody has chosen it."""
    if wanted.against is not None:
        return f"{100 * bound - 100:+.3g} %" if is_change(bound) else f"×{bound:g}"
    if isinstance(wanted, Reading):
        return f"{bound:g} {wanted.unit}".rstrip()
    return f"{bound:g}" if wanted.per else _with_unit(wanted, bound)


def _cell_words(axes: Mapping[str, Value]) -> str:
    return " · ".join(fmt.count(v) if isinstance(v, int) else v for v in axes.values())


def _with_unit(wanted: Conclusion | Reading, value: float) -> str:
    if wanted.against is not None:
        return fmt.percent(value - 1, signed=True) if is_change(value) else f"×{fmt.number(value)}"
    if isinstance(wanted, Reading):
        return f"{fmt.count(value)} {wanted.unit}".rstrip()
    if wanted.per:
        return fmt.number(value)
    unit = METRICS[wanted.metric].unit
    return f"{fmt.count(value)} B" if unit == "B" else fmt.with_unit(value, unit)

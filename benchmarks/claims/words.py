"""How a claim's ruling, its figure and its condition read, on the page and on a terminal."""

from collections import Counter
from collections.abc import Mapping, Sequence

from benchmarks.claims.conclusion import Conclusion, Finding
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


def ruling(claim: Claim, stored: Mapping[str, Finding]) -> str:
    """What the ledger says of a claim: computed where there is a stored result."""
    if claim.id in stored:
        return stored[claim.id].settled
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


def figure_words(conclusion: Conclusion, finding: Finding | None) -> str:
    """A figure with its interval: "+4.9 % (+3.1 % to +6.7 %)", "453 B"; whether it is modelled."""
    if finding is None or finding.value is None:
        return fmt.MISSING
    value = _with_unit(conclusion, finding.value)
    words = [VERDICTS[finding.verdict]] if finding.verdict else []
    words.append(value)
    low, high = finding.ci95 or (finding.value, finding.value)
    reach = f"{_with_unit(conclusion, low)} to {_with_unit(conclusion, high)}"
    if high - low > _NO_WIDTH * abs(finding.value) and reach != f"{value} to {value}":
        words.append(f"({reach})")
    return " ".join(words) + ", modelled" * finding.is_modelled


def condition_words(conclusion: Conclusion) -> str:
    """What has to be: "tracked_peak_per_step of flat_arrays is -20 % or less against tensor"."""
    per = f" per {conclusion.per}" if conclusion.per else ""
    cells = _cell_words(conclusion.cell)
    of = f" of {cells}" if cells else ""
    other = _cell_words(conclusion.against or {})
    if conclusion.verdict is not None:
        wanted = f"{_THAN[conclusion.verdict]} that of {other}"
    else:
        wanted = _bounds_words(conclusion) + (f" against {other}" if other else "")
    return f"{conclusion.metric}{per}{of} is {wanted}"


_THAN: dict[Verdict, str] = {
    "better": "better than",
    "worse": "worse than",
    "same": "the same as",
    "inconclusive": "not to be told from",
}


def _bounds_words(conclusion: Conclusion) -> str:
    least, most = (
        "" if bound is None else _bound_words(conclusion, bound)
        for bound in (conclusion.at_least, conclusion.at_most)
    )
    if least and most:
        return least if least == most else f"between {least} and {most}"
    return f"{least} or more" if least else f"{most} or less"


def _bound_words(conclusion: Conclusion, bound: float) -> str:
    """As round as somebody has chosen it."""
    if conclusion.against is not None:
        return f"{100 * bound - 100:+.3g} %" if _is_change(bound) else f"×{bound:g}"
    return f"{bound:g}" if conclusion.per else _with_unit(conclusion, bound)


def _cell_words(axes: Mapping[str, Value]) -> str:
    return " · ".join(fmt.count(v) if isinstance(v, int) else v for v in axes.values())


def _with_unit(conclusion: Conclusion, value: float) -> str:
    if conclusion.against is not None:
        return fmt.percent(value - 1, signed=True) if _is_change(value) else f"×{fmt.number(value)}"
    if conclusion.per:
        return fmt.number(value)
    unit = METRICS[conclusion.metric].unit
    return f"{fmt.count(value)} B" if unit == "B" else fmt.with_unit(value, unit)


def _is_change(ratio: float) -> bool:
    """Whether people would rather read it in percent."""
    return 1 / 3 < ratio < 3

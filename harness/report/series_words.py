"""The words for how a series stands, the same on every page and in every summary."""

from collections import Counter
from collections.abc import Iterable, Mapping
from math import inf, log

from harness import format as fmt
from harness.render.verdict_words import VERDICTS
from harness.tracking.history_result import SeriesChange
from harness.tracking.verdict import SeriesVerdict, Word

LABELS: dict[Word, str] = {
    "worse": VERDICTS["worse"],
    "better": VERDICTS["better"],
    "changed": "~ changed",
    "suspicious": "? suspicious",
    "inconclusive": VERDICTS["inconclusive"],
    "same": VERDICTS["same"],
    "no_change_shown": "· no change shown",
    "insufficient": "– too few points",
    "reset": "– baseline reset",
    "missing": "– missing",
}
"""A sign and a word, those that speak of a change first."""

_COUNTED: dict[Word, tuple[str, str]] = {
    "worse": ("regression", "regressions"),
    "better": ("improvement", "improvements"),
    "changed": ("changed either way", "changed either way"),
    "suspicious": ("suspicious", "suspicious"),
    "inconclusive": ("inconclusive", "inconclusive"),
    "same": ("the same", "the same"),
    "no_change_shown": ("with no change shown", "with no change shown"),
    "insufficient": ("with too few points", "with too few points"),
}


def counts(verdicts: Iterable[SeriesVerdict]) -> dict[Word, int]:
    """How many series have each word."""
    return dict(Counter(each.word for each in verdicts))


def triaged(verdicts: Iterable[SeriesVerdict]) -> int:
    """How many regressions the triage file speaks of."""
    return sum(each.word == "worse" and not each.has_regression for each in verdicts)


def counts_sentence(number: Mapping[Word, int], triaged: int) -> str:
    """How many series stand how; ``triaged``: regressions of which the triage file speaks."""
    parts = []
    for word, names in _COUNTED.items():
        if many := number.get(word, 0):
            known = f" ({triaged:,} of them triaged)" if word == "worse" and triaged else ""
            parts.append(f"{many:,} {names[many != 1]}{known}")
    return ", ".join(parts)


def named_series(change: SeriesChange) -> str:
    """A series by its metric and parameters."""
    name = f"{change.suite}.{change.metric}".lstrip(".")
    return " · ".join((name, *map(str, change.parameters.values())))


def change_size(ratio: float | None) -> float:
    """How far from no change, whichever way; infinite where it is no number."""
    return abs(log(ratio)) if ratio and ratio > 0 else inf


def change_label(ratio: float | None) -> str:
    """In percent, as a factor from ten times on."""
    if ratio is None or ratio < 10:
        return fmt.percent(None if ratio is None else ratio - 1, signed=True)
    return fmt.ratio(ratio)

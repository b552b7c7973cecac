"""The words for verdicts, the same on every page and in every summary, and what they mean."""

from collections import Counter
from collections.abc import Iterable, Mapping

from harness.statistics.verdict import Verdict
from harness.tracking.verdict import SeriesVerdict, Word

VERDICTS: dict[Verdict, str] = {
    "better": "▲ better",
    "worse": "▼ worse",
    "same": "= same",
    "inconclusive": "? inconclusive",
}
"""What a comparison comes to: a sign and a word."""

MEANINGS: dict[str, str] = {
    "better": "significantly better, and by at least three quarters of the tolerance",
    "worse": "significantly worse, and by at least three quarters of the tolerance",
    "same": "the whole 95 % interval lies within the tolerance",
    "no change shown": "nothing in this history shows a change",
    "inconclusive": "these rounds show neither a change nor that there is none",
    "detects": "smallest change found with 80 % power",
}
"""The glossary, of which captions and pages quote what they need."""

SIGNS: dict[Verdict, str] = {verdict: label[0] for verdict, label in VERDICTS.items()}

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

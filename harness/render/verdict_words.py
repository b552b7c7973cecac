"""The words for verdicts, the same on every page and in every summary, and what they mean."""

from collections.abc import Container

from harness.statistics.verdict import Verdict

VERDICTS: dict[Verdict, str] = {
    "better": "▲ better",
    "worse": "▼ worse",
    "same": "= same",
    "inconclusive": "? inconclusive",
}
"""What a comparison comes to: a sign and a word."""

VERDICT_MEANINGS: dict[str, str] = {
    "better": "significantly better, and by at least three quarters of the tolerance",
    "worse": "significantly worse, and by at least three quarters of the tolerance",
    "same": "the whole 95 % interval lies within the tolerance",
    "no change shown": "nothing in this history shows a change",
    "inconclusive": "these rounds show neither a change nor that there is none",
    "detects": "smallest change found with 80 % power",
}
"""The glossary, of which captions and pages quote what they need."""

REFERENCE = "○ reference"
"""In the place of a verdict on a cell without a collector, which nobody is advised to take."""

REFERENCE_MEANS = "the collector off, so garbage stays for good"

SIGNS: dict[Verdict, str] = {verdict: label[0] for verdict, label in VERDICTS.items()}


def best_sign(verdicts: Container[Verdict], otherwise: str = "") -> str:
    """Of the best verdict there is among several."""
    return next((sign for verdict, sign in SIGNS.items() if verdict in verdicts), otherwise)

"""A gate's verdict and what it is on, in a line."""

import re

from harness.render.verdict_words import VERDICTS
from harness.tracking.gate.result import GateResult

GATE_VERDICTS: dict[str, str] = {str(verdict): words for verdict, words in VERDICTS.items()} | {
    "trade": "⇅ trade",
    "accepted": "✓ accepted",
    "not covered": "? not covered",
    "incomplete": "✗ incomplete",
}
"""What a gate comes to: a sign and a word."""


def title(result: GateResult) -> str:
    """As: ▼ WORSE  "one more dictionary" against main.

    What was not measured in full is never called same or better.
    """
    verdict = result.verdict
    sign, _, word = GATE_VERDICTS[verdict].partition(" ")
    head, against = result.head, re.sub(r"\b([0-9a-f]{10})[0-9a-f]{30}\b", r"\1", result.base.asked)
    subject = f"uncommitted changes on {head.commit[:10]}" if head.is_dirty else f'"{head.subject}"'
    return f"{sign} {word.upper()}{_how_far(result)}  {subject} against {against}"


def _how_far(result: GateResult) -> str:
    """What the verdict rests on where that is not all that was asked for."""
    if result.verdict == "incomplete":
        return ""
    if result.missing:
        return " in what was measured"
    is_allowed = result.not_run and result.verdict in ("same", "better", "inconclusive")
    where = " where it ran" if is_allowed else ""
    others = ", of other outputs" if any(cell.other_outputs for cell in result.cells) else ""
    counted = "" if any(cell.timing for cell in result.cells) else ", by exact counts alone"
    return where + others + counted

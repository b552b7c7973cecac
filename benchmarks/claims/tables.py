"""Claims for people on a terminal: the ledger's rows, and what was measured of some again."""

from collections import Counter
from collections.abc import Mapping, Sequence

from rich.console import Console

from benchmarks.claims.again import Answer
from benchmarks.claims.finding import Finding, together
from benchmarks.claims.ledger import Ledger
from benchmarks.claims.words import condition_words, figures_words, ruling
from harness.render.table import PlainTable, Row
from harness.render.terminal import print_lines, print_table


def ledger_rows(
    ledger: Ledger, stored: Mapping[str, Sequence[Finding]]
) -> list[tuple[str, str, str]]:
    """(thread, claim, what it says and how it was ruled on), for `list_table`."""
    titles = {thread.id: thread.title for thread in ledger.threads}
    return [
        (titles[claim.thread], claim.id, f"{ruling(claim, stored)}: {claim.says}")
        for claim in sorted(ledger.claims, key=lambda claim: [*titles].index(claim.thread))
    ]


_HERE = {"held": "✓ holds", "not held": "✗ does not hold", "not settled": "? not settled"}


def print_answers(
    answers: Sequence[Answer], stored: Mapping[str, Sequence[Finding]], console: Console
) -> None:
    """Print published, stored and new figures beside each other, and what holds here."""
    print_table(_answers_table(answers, stored), console)
    print_lines("", [_explanation(each) for each in answers], console)


def _answers_table(
    answers: Sequence[Answer], stored: Mapping[str, Sequence[Finding]]
) -> PlainTable:
    number = Counter(_here(answer) for answer in answers)
    title = ", ".join(f"{many} {here.split(' ', 1)[1]}" for here, many in number.most_common())
    rows = [_row(answer, stored.get(answer.claim.id, ())) for answer in answers]
    has_interval = any("(" in figure for row in rows for figure in row[2:])
    return PlainTable(
        f"Measured again: {title}",
        ("", "published", "stored", "now", "here"),
        [rows],
        "in brackets the 95 % interval" if has_interval else "",
    )


def _row(answer: Answer, stored: Sequence[Finding]) -> Row:
    conditions = answer.claim.conditions
    figures = (figures_words(conditions, found) for found in (stored, answer.findings))
    return (answer.claim.id, answer.claim.published, *figures, _here(answer))


def _here(answer: Answer) -> str:
    return _HERE[together(answer.findings)] if answer.findings else "– not measured"


def _explanation(answer: Answer) -> str:
    """What the claim says, by what it is judged, and why it is not settled or not measured."""
    claim = answer.claim
    sentences = [claim.says]
    if claim.conditions:
        wanted = " and ".join(map(condition_words, claim.conditions))
        sentences.append(f"It holds if {wanted}.")
    reasons = (answer.reason, *(finding.reason for finding in answer.findings))
    if reason := next(filter(None, reasons), ""):
        sentences.append(f"{reason[:1].upper()}{reason[1:].removesuffix('.')}.")
    return f"{claim.id}: {' '.join(sentences)}"

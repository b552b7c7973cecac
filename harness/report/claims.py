"""Claims for people on a terminal: the ledger's rows, and what was measured of some again."""

from collections import Counter
from collections.abc import Mapping, Sequence

from rich.console import Console

from harness import format as fmt
from harness.claims.conclusion import Finding
from harness.claims.ledger import Ledger
from harness.claims.reproduction import Answer
from harness.report.claim_words import condition_words, figure_words, ruling
from harness.report.table import PlainTable, Row
from harness.report.terminal import print_lines, print_table


def ledger_rows(ledger: Ledger, stored: Mapping[str, Finding]) -> list[tuple[str, str, str]]:
    """(thread, claim, what it says and how it was ruled on), for `list_table`."""
    titles = {thread.id: thread.title for thread in ledger.threads}
    return [
        (titles[claim.thread], claim.id, f"{ruling(claim, stored)}: {claim.says}")
        for claim in sorted(ledger.claims, key=lambda claim: [*titles].index(claim.thread))
    ]


_HERE = {"held": "✓ holds", "not held": "✗ does not hold", "not settled": "? not settled"}


def print_answers(answers: Sequence[Answer], console: Console) -> None:
    """Print published, stored and new figures beside each other, and what holds here."""
    print_table(_answers_table(answers), console)
    print_lines("", [words for each in answers if (words := _explanation(each))], console)


def _answers_table(answers: Sequence[Answer]) -> PlainTable:
    has_published = any(answer.question.published for answer in answers)
    columns = ("", *["published"] * has_published, "stored", "now", "here")
    number = Counter(_here(answer) for answer in answers)
    title = ", ".join(f"{many} {here.split(' ', 1)[1]}" for here, many in number.most_common())
    rows = [_row(answer, has_published) for answer in answers]
    has_interval = any("(" in figure for row in rows for figure in row[1:])
    caption = "in brackets the 95 % interval" if has_interval else ""
    return PlainTable(f"Reproduced: {title}", columns, [rows], caption)


def _row(answer: Answer, has_published: bool) -> Row:
    question = answer.question
    wanted = question.holds_if
    figures = (
        fmt.MISSING if wanted is None else figure_words(wanted, finding)
        for finding in (question.stored, answer.now)
    )
    return (question.id, *[question.published] * has_published, *figures, _here(answer))


def _here(answer: Answer) -> str:
    return "– not measured" if answer.now is None else _HERE[answer.now.settled]


def _explanation(answer: Answer) -> str:
    """What the claim says, by what it is judged, and why it is not settled or not measured."""
    question = answer.question
    sentences = [question.says] if question.says else []
    if question.says and question.holds_if is not None:
        sentences.append(f"It holds if {condition_words(question.holds_if)}.")
    if reason := answer.reason or (answer.now.reason if answer.now else ""):
        sentences.append(f"{reason[:1].upper()}{reason[1:].removesuffix('.')}.")
    return f"{question.id}: {' '.join(sentences)}" if sentences else ""

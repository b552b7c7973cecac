"""Claims that were measured again: what was published, what is stored, what came out now."""

from collections.abc import Mapping, Sequence

import msgspec

from harness.claims.conclusion import Conclusion, Finding, Results, settle
from harness.claims.ledger import Claim, Declared, Ledger
from harness.format import excerpt
from harness.machine.describe import Machine

REPRODUCTION_SCHEMA = "gcbench.reproduction/1"


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A conclusion that a ``command`` of gcbench compare is to be asked for.

    ``stored``: what it came to before, None where that is not known. One with no command, and
    so with no conclusion, cannot be asked: ``declared`` and ``why``, as `Claim` has them.
    """

    id: str
    command: str
    holds_if: Conclusion | None
    stored: Finding | None
    says: str = ""
    published: str = ""
    declared: Declared | None = None
    why: str = ""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What came out now; None where nothing could be measured, and then there is a ``reason``."""

    question: Question
    now: Finding | None
    reason: str = ""


class Reproduction(msgspec.Struct, frozen=True, kw_only=True):
    """What `gcbench reproduce` knows at its end; `--json` writes it as it stands."""

    machine: Machine
    answers: list[Answer]
    is_complete: bool
    schema: str = REPRODUCTION_SCHEMA


def of_claims(
    ledger: Ledger, claims: Sequence[Claim], stored: Mapping[str, Finding]
) -> list[Question]:
    """``claims`` of a ledger as questions, beside what stored results say of them."""
    return [
        Question(
            id=claim.id,
            command=ledger.measurements[claim.measurement].command if claim.measurement else "",
            holds_if=claim.holds_if,
            stored=stored.get(claim.id),
            says=claim.says,
            published=claim.published,
            declared=claim.declared,
            why=claim.why,
        )
        for claim in claims
    ]


def of_result(command: str, results: Results) -> list[Question]:
    """What comparisons have settled, as questions: do the same cells get the same verdict?

    One that is inconclusive has settled nothing and is left out. Raises ValueError where one is
    of cells that its result does not have.
    """
    questions = []
    for part, result in results.items():
        axes = {cell.id: cell.axes for cell in result.cells}
        for compared in result.comparisons:
            if compared.verdict == "inconclusive":
                continue
            for cell in (compared.candidate, compared.baseline):
                if cell not in axes:
                    raise ValueError(f"{excerpt(cell)} is compared and is none of its cells")
            conclusion = Conclusion(
                metric=compared.metric,
                cell=axes[compared.candidate],
                against=axes[compared.baseline],
                part=part,
                verdict=compared.verdict,
            )
            name = " · ".join(filter(None, (part, compared.candidate)))
            stored = settle(conclusion, results)
            questions.append(Question(id=name, command=command, holds_if=conclusion, stored=stored))
    return questions


def answer(question: Question, results: Results) -> Answer:
    """What ``results`` say to it."""
    if question.holds_if is None:
        return Answer(question=question, now=None, reason=question.why)
    try:
        return Answer(question=question, now=settle(question.holds_if, results))
    except ValueError as error:
        failures = (each for result in results.values() for each in result.failures)
        reason = next((failure.reason for failure in failures), str(error))
        return Answer(question=question, now=None, reason=reason)

"""What an experiment found, in a line and in a few more."""

from engines.protocol import NOT_AS_DEPLOYED
from harness.experiment.reference import candidates
from harness.experiment.result import ExperimentResult
from harness.format import capitalised
from harness.render.report import known
from harness.render.verdict_words import REFERENCE, SIGNS, best_sign
from harness.report.conclusion import in_short
from harness.report.header import INCOMPLETE
from harness.report.power import detects_words, settles_nothing, surroundings_words

MOST_SENTENCES = 3


def headline(result: ExperimentResult) -> str:
    """The first thing to know, in a line or two."""
    if not result.is_complete:
        return f"✗ Incomplete: {INCOMPLETE}."
    if nothing := settles_nothing(result) or _otherwise_deployed(result):
        return f"{SIGNS['inconclusive']} {capitalised(nothing)}."
    if not result.comparisons:
        why = [*result.missing, *result.not_compared]
        return next(iter(why), "Nothing is compared here.")
    verdicts = {each.verdict for each in candidates(result)}
    return f"{best_sign(verdicts, REFERENCE[0])} {in_short(result)[0]}"


def _otherwise_deployed(result: ExperimentResult) -> str:
    """The first cell that has run another branch than where its engine is deployed, and which."""
    said = ((each.id, each.engine_state.get(NOT_AS_DEPLOYED)) for each in result.cells)
    return next((f"{cell}: {words}" for cell, words in said if words), "")


def sentences(result: ExperimentResult) -> list[str]:
    """Two or three more that matter, none of them the headline."""
    if not result.is_complete:
        return []
    above = headline(result)
    return [each for each in in_short(result) if each.rstrip(".") not in above][:MOST_SENTENCES]


def sure_pairs(result: ExperimentResult) -> list[tuple[str, str]]:
    """How quiet the machine was and what was detectable, as (label, words)."""
    surroundings = result.surroundings
    busy = surroundings_words(surroundings) or "how busy it was is not known"
    return known([("surroundings", busy), ("detects", detects_words(result.comparisons))])


def why_alone(result: ExperimentResult) -> list[str]:
    """Where one cell is left: which of what was asked for has none, and why."""
    if len(result.cells) > 1:
        return []
    return [f"Left out: {why}." for why in result.left_out][:MOST_SENTENCES]

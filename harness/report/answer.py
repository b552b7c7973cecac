"""The short report of an experiment: what was found, one table, how sure, and where the rest is."""

from rich.console import Console

from harness.experiment.reference import candidates
from harness.experiment.result import ExperimentResult
from harness.format import capitalised
from harness.report.conclusion import conclude, in_short
from harness.report.header import INCOMPLETE
from harness.report.messages import message_sizes
from harness.report.pivot import pivot_tables
from harness.report.power import detects_words, settles_nothing, surroundings_words
from harness.report.safe_text import safe_text
from harness.report.summary import cells_table, failure_lines, phases_table
from harness.report.terminal import experiment_tables, print_lines, print_pairs, print_table
from harness.report.verdict_words import REFERENCE, SIGNS, best_sign

MOST_SENTENCES = 3
MOST_FAILURES = 3


def headline(result: ExperimentResult) -> str:
    """The first thing to know, in a line or two."""
    if not result.is_complete:
        return f"✗ Incomplete: {INCOMPLETE}."
    if nothing := settles_nothing(result):
        return f"{SIGNS['inconclusive']} {capitalised(nothing)}."
    if not result.comparisons:
        why = (note for note in result.notes if note.startswith(("No ratio", "Not compared")))
        return next(why, "Nothing is compared here.")
    verdicts = {each.verdict for each in candidates(result)}
    return f"{best_sign(verdicts, REFERENCE[0])} {in_short(result)[0]}"


def sentences(result: ExperimentResult) -> list[str]:
    """Two or three more that matter, none of them the headline."""
    if not result.is_complete:
        return []
    above = headline(result)
    return [each for each in in_short(result) if each.rstrip(".") not in above][:MOST_SENTENCES]


def answer_pairs(result: ExperimentResult) -> list[tuple[str, str]]:
    """How quiet the machine was and what was detectable, as (label, words)."""
    surroundings = result.surroundings
    pairs = [
        (
            "machine",
            surroundings_words(surroundings) if surroundings else "how busy it was is not known",
        ),
        ("detects", detects_words(result.comparisons)),
    ]
    return [(label, words) for label, words in pairs if words]


def _why_alone(result: ExperimentResult) -> list[str]:
    """Where one cell is left: which of what was asked for has none, and why."""
    if len(result.cells) > 1:
        return []
    return [note for note in result.notes if note.startswith("Left out")][:MOST_SENTENCES]


def _unseen(result: ExperimentResult) -> str:
    """What the short report leaves out, counted."""
    left = len(conclude(result)) - 1 - len(sentences(result)) if result.is_complete else 0
    notes = len(result.notes) - len(_why_alone(result))
    counted = ((left, "conclusion"), (notes, "note"))
    found = [f"{number} more {noun}{'s' * (number > 1)}" for number, noun in counted if number > 0]
    return f" ({' and '.join(found)})" if found else ""


def experiment_report(
    result: ExperimentResult,
    console: Console,
    more: str,
    *,
    phases: bool = False,
    details: bool = False,
) -> None:
    """Print the short report, or with ``details`` all; ``more`` is the command that does."""
    if details:
        conclusions = conclude(result) if result.is_complete else []
        experiment_tables(result, console, phases=phases, conclusions=conclusions)
        return
    console.print(safe_text(headline(result), style="bold"))
    tables = pivot_tables(result) or [cells_table(result)]
    tables = [*tables, *message_sizes(result), *([phases_table(result)] if phases else [])]
    for table in tables:
        print_table(table, console)
    print_lines("", [*_why_alone(result), *sentences(result)], console)
    failures = failure_lines(result)
    more_failures = len(failures) - MOST_FAILURES
    shown = failures[:MOST_FAILURES] + [f"and {more_failures} more"] * (more_failures > 0)
    print_lines("Trials without a result", shown, console, style="red")
    console.print()
    print_pairs([*answer_pairs(result), ("details", more + _unseen(result))], console)

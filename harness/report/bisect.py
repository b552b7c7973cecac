"""A bisection's report: which commit it was, then what was measured to find it."""

from harness import format as fmt
from harness.render.report import Listing, Report, known, remarks
from harness.render.table import PlainTable
from harness.report.function_words import largest_changes_table
from harness.report.header import machine_words
from harness.tracking.bisect.result import BisectResult, Candidate, Measured

_VERDICTS = {"good": "good", "bad": "bad", "cannot run": "✗ cannot run"}
_SUBJECT_CHARACTERS = 40


def describe_bisect(result: BisectResult) -> Report:
    """Which commit it was, then what was measured to find it."""
    return Report(
        heading="gcbench bisect",
        name=result.name,
        answer=bisect_headline(result),
        tables=[
            *_functions_tables(result),
            *([_measured_table(result)] if result.measured else []),
        ],
        sentences=_findings(result),
        lists=[
            Listing("Cannot be measured", _failure_lines(result), is_bad=True),
            *remarks(result),
        ],
        next=known(
            [("all it changes", result.explain), *(("others", each) for each in result.rest)]
        ),
        facts=known([("machine", machine_words(result.machine))]),
        command=result.command,
    )


def bisect_headline(result: BisectResult) -> str:
    """The answer in one sentence."""
    match result.conclusion:
        case "found":
            (culprit,) = result.suspects
            answer = f"{_named(culprit, ',')} changed {result.metric} {_step(result)}"
        case "several":
            answer = (
                f"One of {len(result.suspects)} {result.candidate_kind}s changed {result.metric} "
                f"{_step(result)}; those before the last of them cannot be measured"
            )
        case "gradual":
            ends = (result.measured[0].figure, result.measured[-1].figure)
            answer = (
                f"No single {result.candidate_kind} moved {result.metric}: it goes from "
                f"{_change(result, *ends)} in steps that are each too small to speak of"
            )
        case "same":
            answer = f"Nothing to find: {_sameness(result)}"
        case "unmeasured":
            failed = next(each for each in result.measured if each.figure is None)
            end = f"GOOD {result.good}" if failed == result.measured[0] else f"BAD {result.bad}"
            answer = f"Nothing was searched, because {end} cannot be measured: {failed.reason}"
        case "interrupted":
            answer = _interrupted(result)
    return f"{answer.removesuffix('.')}."


def _interrupted(result: BisectResult) -> str:
    if not result.suspects:
        return f"Interrupted before GOOD {result.good} and BAD {result.bad} were both measured"
    last = next(each for each in result.measured[::-1] if each.verdict == "good")
    return (
        f"Interrupted: {result.metric} changed {_step(result)} with one of the "
        f"{len(result.suspects)} {result.candidate_kind}s after {last.candidate.label} up to "
        f"{result.suspects[-1].label}"
    )


def _findings(result: BisectResult) -> list[str]:
    """What belongs under the answer: the suspects where there are several, and what is left."""
    lines = []
    if result.conclusion == "several":
        lines = [_named(each) for each in result.suspects]
    if result.rest:
        share = _share(result)
        whole = f"{fmt.percent(share)} of it" if share is not None and 0 < share < 1 else "not it"
        lines.append(
            f"Between GOOD and BAD the metric goes from "
            f"{_change(result, result.measured[0].figure, result.measured[-1].figure)}. This "
            f"{result.candidate_kind}'s change is {whole}: others moved it, too."
        )
    return lines


def _measured_table(result: BisectResult) -> PlainTable:
    """All that was measured, in the order of history."""
    kinds = f"{result.candidate_kind}s"
    after = f"{result.num_commits} {kinds} after GOOD"
    changing = (
        f", of which {result.num_candidates} change {result.package}/"
        if result.candidate_kind == "commit"
        else ""
    )
    return PlainTable(
        f"Measured {kinds}, oldest first",
        (result.candidate_kind, result.metric, "verdict"),
        [[_row(result, each) for each in result.measured]],
        caption=f"{after}{changing}. good, bad: the figure is nearer to that of GOOD, of BAD.",
    )


def _functions_tables(result: BisectResult) -> list[PlainTable]:
    """What the commit does otherwise than the one before it, by function."""
    found = result.functions
    return [largest_changes_table("What changed most, by function", found)] if found else []


def _failure_lines(result: BisectResult) -> list[str]:
    """Why candidates cannot be measured, a line for each reason."""
    labels: dict[str, list[str]] = {}
    for each in result.measured:
        if each.figure is None:
            labels.setdefault(each.reason, []).append(each.candidate.label)
    return [f"{', '.join(those)}: {reason}" for reason, those in labels.items()]


def _named(candidate: Candidate, end: str = "") -> str:
    if not candidate.author:
        return candidate.label
    subject = f"{candidate.label} {candidate.subject}".strip()
    return f"{subject}, by {candidate.author} on {candidate.date}{end}"


def _row(result: BisectResult, each: Measured) -> tuple[str, str, str]:
    subject = each.candidate.subject
    if len(subject) > _SUBJECT_CHARACTERS:
        subject = f"{subject[: _SUBJECT_CHARACTERS - 1]}…"
    name = f"{each.candidate.label} {subject}".strip()
    return name, _value(each.figure, result.unit), _VERDICTS[each.verdict]


def _step(result: BisectResult) -> str:
    return f"from {_change(result, result.before, result.after)}"


def _change(result: BisectResult, before: float | None, after: float | None) -> str:
    """As "412 to 455 bytecodes (+10.4 %, worse)"."""
    said = f"{_value(before, result.unit)} to {fmt.with_unit(after, result.unit)}"
    if before is None or after is None or before == after:
        return said
    verdict = "better" if (after > before) == (result.direction == "higher") else "worse"
    share = f"{fmt.percent((after - before) / abs(before), signed=True)}, " if before else ""
    return f"{said} ({share}{verdict})"


def _value(value: float | None, unit: str) -> str:
    """Without the unit where the next figure has it."""
    scaled = unit == "B" or unit.startswith("share")
    return fmt.with_unit(value, unit) if scaled else fmt.count(value)


def _sameness(result: BisectResult) -> str:
    first, last = (result.measured[place].figure for place in (0, -1))
    if first == last:
        figure = fmt.with_unit(first, result.unit)
        return f"{result.metric} is {figure} at GOOD {result.good} and at BAD {result.bad} alike"
    return (
        f"{result.metric} goes from {_change(result, first, last)} between GOOD {result.good} and "
        f"BAD {result.bad}, too small a change to search for"
    )


def _share(result: BisectResult) -> float | None:
    first, last = (result.measured[place].figure for place in (0, -1))
    before, after = result.before, result.after
    if first is None or last is None or before is None or after is None or first == last:
        return None
    return (after - before) / (last - first)

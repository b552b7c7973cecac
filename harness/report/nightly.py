"""A night in words and tables, for a terminal or a page of Markdown."""

from collections.abc import Sequence
from itertools import pairwise
from urllib.parse import quote

from harness import format as fmt
from harness.report.markdown import table_markdown
from harness.report.markdown_escape import code_block, code_span, escaped
from harness.report.plots import strokes
from harness.report.series_words import LABELS, counts_sentence
from harness.report.summary import first_names
from harness.report.table import PlainTable, Row
from harness.tracking.detect.self_test import FEW_POINTS, STEPS, WITHIN, SelfTest
from harness.tracking.nightly.result import Alert, ChangedSeries, NightlyResult, Suspect

_CERTAINTY = {
    "found": "by the nights",
    "confirmed": "measured again",
    "suspected": "not certain",
    "machine": "the machine's",
}
_MOST_ROWS = 12
_MOST_CHANGES = 3


def nightly_headline(result: NightlyResult) -> str:
    """The night in a line; one that was interrupted is never called good."""
    if not result.is_complete:
        found = _found_words(result)
        return f"✗ interrupted, incomplete{'; so far ' * bool(found)}{found}"
    return _found_words(result) or _quiet_words(result)


def _found_words(result: NightlyResult) -> str:
    """What became worse, or ""."""
    open_ = [alert for alert in result.alerts if alert.is_regression]
    if open_:
        commits = "; ".join(fmt.one_of(_hashes(alert)) for alert in open_)
        if all(len(alert.plausible) == 1 for alert in open_):
            commits = commits.replace(";", ",")
        return f"▼ {_plural(len(open_), 'commit')} made something worse: {commits}"
    return ""


def _quiet_words(result: NightlyResult) -> str:
    if not result.is_judged:
        return "✗ no verdict: too few points yet"
    if result.unsettled:
        series = _plural(result.unsettled, "series", "series")
        return f"✗ inconclusive: {series} became worse and may have recovered"
    if any(each.reason for each in result.measured):
        return "✗ not everything could be measured; no regression in the rest"
    if result.alerts:
        return "· no new regression; known changes are listed below"
    return "· no change shown"


def nightly_pairs(result: NightlyResult) -> list[tuple[str, str]]:
    """What was done, as (label, words)."""
    tried = [each for each in result.measured if not each.reason]
    minutes, seconds = divmod(round(sum(each.seconds for each in tried)), 60)
    words = f"{_plural(len(tried), 'commit')} in {minutes} min {seconds} s" if tried else "nothing"
    again = f", {_plural(result.reruns, 'suspicion')} measured again" if result.reruns else ""
    pairs = [
        ("machine", result.machine),
        ("measured", words + again),
        ("series", counts_sentence(result.verdicts, result.triaged) or "none"),
        ("dashboard", result.dashboard),
        ("command", result.command),
    ]
    return [(label, words) for label, words in pairs if words]


def alert_title(alert: Alert) -> str:
    """The commit, or those that may be it, and how it stands."""
    kind = "regression" if alert.is_regression else "not a new regression"
    subject = alert.subject if len(alert.plausible) == 1 else ""
    return f"{fmt.one_of(_hashes(alert))} {subject} ({kind})".replace("  ", " ")


def _hashes(alert: Alert) -> list[str]:
    return [each.commit for each in alert.plausible]


def alert_table(alert: Alert) -> PlainTable:
    """Its series, the worst first."""
    rows = [_row(each) for each in alert.changes[:_MOST_ROWS]]
    left = len(alert.changes) - len(rows)
    return PlainTable(
        alert_title(alert),
        ("series", "before", "after", "change", "verdict", "how sure"),
        [rows],
        f"and {_plural(left, 'series', 'series')} more, in the JSON" if left else "",
    )


def alert_pairs(alert: Alert) -> list[tuple[str, str]]:
    """An alert in a few lines, as (label, words): what changed most, since when, and again."""
    changes = alert.changes[:_MOST_CHANGES]
    lines = [change_words(each) for each in changes]
    if left := len(alert.changes) - len(changes):
        lines.append(f"and {_plural(left, 'series', 'series')} more")
    suspects = [_suspect_words(each, alert) for each in alert.plausible]
    more = len(suspects) - _MOST_CHANGES
    named = suspects[:_MOST_CHANGES] + [f"and {more} more"] * (more > 0)
    told = (
        ("changed", lines),
        ("around", [around_words(alert)] if alert.around else []),
        ("suspects", named if len(suspects) > 1 else []),
        ("after", [alert.last_before[:10]]),
        ("known", _said(alert)),
        ("again", alert.command[:1]),
    )
    return [(label * (n == 0), line) for label, lines in told for n, line in enumerate(lines)]


def around_words(alert: Alert) -> str:
    """The series of its first change, a stroke a commit, from the lowest value to the highest."""
    drawn = strokes([point.value for point in alert.around])
    sides = [point.side for point in alert.around]
    cuts = [n for n in range(1, len(sides)) if sides[n] != sides[n - 1]]
    parts = [drawn[low:high] for low, high in pairwise([0, *cuts, len(drawn)])]
    return f"{'│'.join(parts)}  {_plural(len(sides), 'commit')}"


def change_words(each: ChangedSeries) -> str:
    """A series and its change: "itl_p99 +20.0 %: 1.10 µs → 1.32 µs, measured again"."""
    label, before, after, change, _, sure = _row(each)
    ratio = "" if change == fmt.MISSING else f" {change}"
    _, _, unit = after.partition(" ")
    before = before.removesuffix(f" {unit}") if unit else before
    return f"{LABELS[each.verdict][0]} {label}{ratio}: {before} → {after}, {sure}"


def _said(alert: Alert) -> list[str]:
    """What the triage file says of its series."""
    said = dict.fromkeys((each.status, each.reason) for each in alert.changes if each.reason)
    return [
        f"{status}: {reason}" if status != "open" else f"no longer {reason}"
        for status, reason in said
    ]


def alert_lines(alert: Alert) -> list[str]:
    """What there is to know beside the figures."""
    is_one = len(alert.plausible) == 1
    lines = [f"around it: {around_words(alert)}"] if alert.around else []
    lines.append(f"last commit before {'it' if is_one else 'these'}: {alert.last_before[:10]}")
    if not is_one:
        lines += [_suspect_words(each, alert) for each in alert.plausible[:_MOST_ROWS]]
    if alert.first_named:
        lines.append(f"first reported as: {fmt.one_of(alert.first_named)}")
    lines += [f"also different: {each}" for each in alert.environment]
    lines += [
        f"with later changes, {_label(each.metric, each.series)}: {LABELS[each.stands]}"
        for each in alert.changes
        if each.verdict != each.stands
    ][:_MOST_ROWS]
    return [*lines, *_said(alert)]


def _suspect_words(suspect: Suspect, alert: Alert) -> str:
    how = "most likely" if suspect.commit == alert.commit else "possibly"
    return f"{how}: {suspect.commit[:10]} {suspect.subject}".rstrip()


def suspicious_table(changes: Sequence[ChangedSeries]) -> PlainTable | None:
    """What has jumped and is not certain."""
    if not changes:
        return None
    rows = [_row(each)[:4] for each in changes[:_MOST_ROWS]]
    return PlainTable(
        "Suspicious: a jump that has neither lasted nor been confirmed",
        ("series", "before", "after", "change"),
        [rows],
    )


def failed_lines(result: NightlyResult) -> list[str]:
    """Commits and series that were not measured, those with the same reason together."""
    alike: dict[str, list[str]] = {}
    for each in result.measured:
        if each.reason:
            name = f"{each.commit[:10]} {each.subject}".rstrip()
            alike.setdefault(each.reason, []).append(name)
    tried = [f"{first_names(commits)}: {reason}" for reason, commits in alike.items()]
    return [*tried, *result.missing]


def nightly_markdown(result: NightlyResult, picture: str = "") -> str:
    """The night for a page or a chat: what commits say is shown as it stands.

    ``picture``: the path of the night's picture from there, "" for none.
    """
    parts = [f"### gcbench nightly: {nightly_headline(result)}"]
    series = counts_sentence(result.verdicts, result.triaged)
    parts.append(f"{escaped(series)}." if series else "")
    if picture:
        parts.append(f"![The series that changed most, around each step]({quote(picture)})")
    for alert in result.alerts:
        parts.append(f"#### {code_span(alert_title(alert))}")
        parts.append(table_markdown(alert_table(alert)._replace(title="")).removeprefix("****\n\n"))
        parts.append("\n".join(f"- {escaped(line)}" for line in alert_lines(alert)))
        parts.append(code_block(alert.command))
    if table := suspicious_table(result.suspicious):
        parts.append(table_markdown(table))
    for title, lines in (
        ("Not measured", failed_lines(result)),
        ("Notes", [*result.notes, *result.problems]),
    ):
        if lines:
            parts.append(f"**{title}**\n\n" + "\n".join(f"- {escaped(line)}" for line in lines))
    facts = [(label, words) for label, words in nightly_pairs(result) if label != "series"]
    parts.append("\n".join(f"- **{label}**: {escaped(words)}" for label, words in facts))
    return "\n\n".join(part for part in parts if part) + "\n"


_SHORT_HISTORY = (
    f"; *: fewer than {FEW_POINTS} points, too few to know the noise: one bad night among them "
    "comes back again and again in the simulation, so take the shares for a guess and ask again "
    "with more nights"
)


def self_test_table(rows: Sequence[SelfTest]) -> PlainTable:
    """What the detector is worth at the noise of each series; of rows that could be tested."""
    columns = (
        "series",
        "points",
        "noise",
        "false",
        *(
            f"{fmt.percent(step)[:-4]} % found\nwithin {'/'.join(map(str, WITHIN))}"
            for step in STEPS
        ),
        "nights to\nhalf of them",
    )
    few = any(row.points < FEW_POINTS for row in rows)
    numbers = " to ".join(
        dict.fromkeys(f"{end(row.repetitions for row in rows)}" for end in (min, max))
    )
    return PlainTable(
        "The detector at this history's own noise (simulated)",
        columns,
        [[_self_test_row(row) for row in rows]],
        "false: histories of 60 nights without a change in which there is an alert; found: steps "
        "with an alert within so many nights, by the nights alone; nights to half of them: after "
        f"how many half of the steps of {_steps_words()} % are found (– : not within "
        f"{max(WITHIN)}); each share is of {numbers} simulated histories" + _SHORT_HISTORY * few,
    )


def _steps_words() -> str:
    return "/".join(f"{100 * step:g}" for step in STEPS)


def _self_test_row(row: SelfTest) -> Row:
    shares = row.found or {}
    found = ("/".join(f"{100 * share:.0f}" for share in shares[step]) + " %" for step in STEPS)
    label = _label(row.metric, row.series)
    caution = "*" * (row.points < FEW_POINTS)
    figures = (fmt.percent(row.noise), fmt.percent(row.false_alerts) + caution)
    delays = row.nights or {}
    nights = "/".join(str(delays.get(step) or fmt.MISSING) for step in STEPS)
    return (label, str(row.points), *figures, *found, nights)


def _row(each: ChangedSeries) -> Row:
    unit = fmt.short_unit(each.unit)
    change = fmt.MISSING if each.ratio is None else fmt.percent(each.ratio - 1, signed=True)
    verdict = LABELS[each.verdict] if each.status == "open" else each.status
    sure = "exact" if each.kind == "exact" else _CERTAINTY[each.certainty]
    levels = (fmt.with_unit(value, unit).strip() for value in (each.before, each.after))
    return (_label(each.metric, each.series), *levels, change, verdict, sure)


def _label(metric: str, series: str) -> str:
    """A series without the module that asv puts before its metric."""
    return metric + "".join(series.partition("(")[1:])


def _plural(number: int, word: str, words: str = "") -> str:
    return f"{number:,} {word if number == 1 else words or word + 's'}"

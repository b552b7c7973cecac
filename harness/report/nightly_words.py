"""A night in words and tables: its headline, and each alert."""

from collections.abc import Sequence
from itertools import pairwise

from harness import format as fmt
from harness.render.plots import strokes
from harness.render.table import PlainTable, Row
from harness.report.series_words import LABELS
from harness.report.summary import first_names
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


def measured_words(result: NightlyResult) -> str:
    """How many commits were measured, in what time, and how many suspicions again."""
    tried = [each for each in result.measured if not each.reason]
    minutes, seconds = divmod(round(sum(each.seconds for each in tried)), 60)
    words = f"{_plural(len(tried), 'commit')} in {minutes} min {seconds} s" if tried else "nothing"
    again = f", {_plural(result.reruns, 'suspicion')} measured again" if result.reruns else ""
    return words + again


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
        "",
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
        f"with later changes, {series_label(each.metric, each.series)}: {LABELS[each.stands]}"
        for each in alert.changes
        if each.verdict != each.stands
    ][:_MOST_ROWS]
    return [*lines, *_said(alert)]


def _suspect_words(suspect: Suspect, alert: Alert) -> str:
    how = "most likely" if suspect.commit == alert.commit else "possibly"
    return f"{how}: {suspect.commit[:10]} {suspect.subject}".rstrip()


def suspicious_table(changes: Sequence[ChangedSeries]) -> list[PlainTable]:
    """What has jumped and is not certain; none without."""
    if not changes:
        return []
    rows = [_row(each)[:4] for each in changes[:_MOST_ROWS]]
    return [
        PlainTable(
            "Suspicious: a jump that has neither lasted nor been confirmed",
            ("series", "before", "after", "change"),
            [rows],
        )
    ]


def failed_lines(result: NightlyResult) -> list[str]:
    """Commits and series that were not measured, those with the same reason together."""
    alike: dict[str, list[str]] = {}
    for each in result.measured:
        if each.reason:
            name = f"{each.commit[:10]} {each.subject}".rstrip()
            alike.setdefault(each.reason, []).append(name)
    tried = [f"{first_names(commits)}: {reason}" for reason, commits in alike.items()]
    return [*tried, *result.missing]


def _row(each: ChangedSeries) -> Row:
    unit = fmt.short_unit(each.unit)
    change = fmt.MISSING if each.ratio is None else fmt.percent(each.ratio - 1, signed=True)
    verdict = LABELS[each.verdict] if each.status == "open" else each.status
    sure = "exact" if each.kind == "exact" else _CERTAINTY[each.certainty]
    levels = (fmt.with_unit(value, unit).strip() for value in (each.before, each.after))
    return (series_label(each.metric, each.series), *levels, change, verdict, sure)


def series_label(metric: str, series: str) -> str:
    """A series without the module that asv puts before its metric."""
    return metric + "".join(series.partition("(")[1:])


def _plural(number: int, word: str, words: str = "") -> str:
    return f"{number:,} {word if number == 1 else words or word + 's'}"

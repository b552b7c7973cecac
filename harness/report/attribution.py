"""What made streams wait: the answer in a sentence, causes in a table, what is not known."""

from harness import format as fmt
from harness.load.attribution import REST, SERVER, SEVERAL, Attribution, Cause
from harness.render.table import PlainTable, Row
from harness.report.collection_words import kind_words

_LABELS = {SEVERAL: "several of these together", REST: "rest: no pause explains it"}


def attribution_answer(found: Attribution) -> list[str]:
    """How much of the time in slow gaps the server's collector made, and which pause was worst."""
    if not found.slow_gaps:
        return [f"None of {fmt.count(found.num_gaps)} gaps was slow."]
    share = sum(each.gap_share or 0 for each in found.causes if each.cause == SERVER)
    lines = [
        f"{fmt.count(found.slow_gaps)} of {fmt.count(found.num_gaps)} gaps were slow. The server's "
        f"garbage collector made {fmt.percent(share)} of the time by which they were."
    ]
    if found.pauses:
        worst = found.pauses[0]
        lines.append(
            f"Most was one pause of {fmt.seconds(worst.seconds)}: "
            f"{kind_words(worst.generation, worst.python)} of {_named(worst.process, worst.pid)}, "
            f"for which {fmt.count(worst.gaps)} gaps were slow."
        )
    return lines


def attribution_table(found: Attribution) -> PlainTable:
    """Slow gaps and first tokens by cause."""
    rows: list[Row] = [_row(each) for each in found.causes]
    return PlainTable(
        "What made streams wait",
        ("", "slow\ngaps", "their\ntime", "share", "first\ntokens", "share", "pauses"),
        [rows],
        f"slow: more than {fmt.seconds(found.slack_seconds)} over the stream's median gap "
        "(docs/load.md)",
    )


def attribution_notes(found: Attribution) -> list[str]:
    """Processes that are not charged, and collections whose moment is not known."""
    notes = [
        f"{_named(each.process, each.pid)} has collected for {fmt.seconds(each.pause_seconds)}, "
        "but its pauses did not stop streams: no gap is charged to it."
        for each in found.processes
        if not each.is_charged
    ]
    if found.lost:
        notes.append(
            f"{fmt.count(found.lost)} collections of the server during the run came too fast to be "
            "recorded one by one; no gap is charged to them."
        )
    return notes


def _row(cause: Cause) -> Row:
    return (
        cause_label(cause),
        fmt.count(cause.gaps),
        fmt.seconds(cause.gap_seconds),
        fmt.percent(cause.gap_share),
        fmt.count(cause.first_tokens),
        fmt.percent(cause.first_token_share),
        fmt.count(cause.pauses) if cause.pauses else "",
    )


def cause_label(cause: Cause) -> str:
    """As people read it."""
    if cause.cause == SERVER:
        return f"collector of {_named(cause.process, cause.pid)}"
    if cause.cause in _LABELS:
        return _LABELS[cause.cause]
    _, _, what = cause.cause.partition(" ")
    return f"{cause.process}: its {what}"


def _named(process: str, pid: int) -> str:
    return fmt.printable(f"{process} ({pid})")

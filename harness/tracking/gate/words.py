"""What a gate found, in sentences: what changed, by how much, and whose doing it is."""

from collections.abc import Iterator, Sequence

from harness import format as fmt
from harness.experiment.result import Comparison
from harness.metrics import METRICS
from harness.statistics.power import MOST_DETECTED
from harness.tracking.gate.c_functions import PER_STEP
from harness.tracking.gate.exact_words import BYTECODES, difference_words, exact_sentences
from harness.tracking.gate.result import (
    CauseOfChange,
    GateCell,
    RequestChange,
    StallChange,
    TimingChange,
)

_UNTOLD = "too noisy to say whether the code's or the collector's"


def conclude_gate(cells: Sequence[GateCell]) -> list[str]:
    """A sentence for each thing that changed, with the cells of which it holds; then the rest."""
    holds_for: dict[str, list[str]] = {}
    # As the verdict: what nothing makes up for comes before a trade.
    for cell in sorted(cells, key=lambda cell: cell.verdict != "worse"):
        for sentence in _cell_sentences(cell):
            holds_for.setdefault(sentence, []).append(cell.id)
    sentences = [
        f"{'Every cell' if 1 < len(ids) == len(cells) else '; '.join(ids)}: {sentence}"
        for sentence, ids in holds_for.items()
    ]
    moved = {
        cell.id: figures
        for cell in cells
        if cell.verdict == "same"
        if (figures := ", ".join(_moved(cell)))
    }
    same = [cell.id for cell in cells if cell.verdict == "same" and cell.id not in moved]
    if same and len(same) < len(cells):
        sentences.append(f"Nothing changed in {len(same)} of {len(cells)}: {'; '.join(same)}.")
    elif same:
        sentences.append(f"Nothing changed: {'; '.join(same)}.")
    return sentences + [
        f"{cell}: changed by too little to act upon: {figures}." for cell, figures in moved.items()
    ]


def _moved(cell: GateCell) -> Iterator[str]:
    """Exact figures that changed, each by less than its floor."""
    for change in cell.exact:
        if change.verdict == "same" and change.before != change.after:
            before, after = fmt.count(change.before), fmt.count(change.after)
            yield f"{change.metric} {before} → {after}"


def _cell_sentences(cell: GateCell) -> list[str]:
    return [*_other_work(cell), *_trade(cell), *exact_sentences(cell), *time_sentences(cell)]


def _other_work(cell: GateCell) -> Iterator[str]:
    if cell.other_outputs:
        yield (
            f"HEAD produces other {cell.other_outputs} than BASE, which is accepted: its counts "
            "and times are of other work."
        )


def _trade(cell: GateCell) -> Iterator[str]:
    """Both sides with their sizes."""
    if cell.verdict == "trade":
        gains, losses = (
            " and ".join(difference_words(each) for each in cell.exact if each.verdict == verdict)
            for verdict in ("better", "worse")
        )
        yield f"a trade, {gains} for {losses}; it fails the gate until somebody accepts it."


def time_sentences(cell: GateCell) -> list[str]:
    """What a cell's times say, none where it was not timed or all is the same."""
    timing = cell.timing
    if timing is None:
        return []
    steps = [*_steady(cell, timing), *_mean(cell, timing), *_stalled(timing)]
    return [*steps, *_requests(timing)]


def _steady(cell: GateCell, timing: TimingChange) -> Iterator[str]:
    """What a usual step takes."""
    if timing.steady.verdict != "same":
        yield _host_time(cell, "host time per step", timing.steady, timing.attribution)


def _mean(cell: GateCell, timing: TimingChange) -> Iterator[str]:
    """A usual step that costs more makes the mean more, too: said once."""
    steady, mean = timing.steady.verdict, timing.mean
    if mean.verdict in ("same", steady):
        return
    usual = "a usual step takes what it did; " if steady == "same" else ""
    # The rounds that looked for the cause looked at the usual step where that has changed.
    by = None if steady in ("better", "worse") else timing.attribution
    yield _host_time(cell, f"{usual}the mean host time per step", mean, by)


def _stalled(timing: TimingChange) -> Iterator[str]:
    if timing.stalls is not None and timing.stalls.verdict != "same":
        yield _stalls(timing.stalls)


def _requests(timing: TimingChange) -> Iterator[str]:
    """Steps that cost more make requests slower, too: said once."""
    changes = (timing.steady, timing.mean, timing.stalls)
    of_steps = {each.verdict for each in changes if each is not None}
    for each in timing.requests:
        if each.change.verdict in {"worse", "better"} - of_steps:
            yield _felt(each, between_steps=of_steps == {"same"})


def _felt(found: RequestChange, *, between_steps: bool) -> str:
    """``between_steps``: no step takes longer or less, so that it is what happens around them."""
    what = METRICS[found.change.metric].words
    where = (
        "; steps take what they did, so it is beside them, as in add_request or in another process"
    )
    return f"{what} {_change(found.change)}{where if between_steps else ''}."


def _host_time(cell: GateCell, what: str, found: Comparison, by: CauseOfChange | None) -> str:
    if found.verdict == "inconclusive":
        return _undecided(what, found)
    cause = "" if by is None else f": {_cause(found, by, is_c_code=_is_c_code(cell))}"
    return f"{what} {_change(found)}{cause}."


def _is_c_code(cell: GateCell) -> bool:
    """Whether what changed times has left what Python does as it was, bytecode for bytecode."""
    is_counted = any(change.metric == BYTECODES for change in cell.exact)
    counts = (change for change in cell.exact if change.metric != PER_STEP)
    return is_counted and all(change.before == change.after for change in counts)


def _cause(found: Comparison, by: CauseOfChange, *, is_c_code: bool) -> str:
    """Whose doing it is, with both parts; these are of rounds of their own."""
    parts = {"code": by.code, "collector": by.collector}
    shown = ", ".join(
        f"{fmt.percent(part.ratio - 1, signed=True)} by the {name}" for name, part in parts.items()
    )
    if by.cause == "untold" or not adds_up(found, by):
        return f"{_UNTOLD} ({shown})"
    if by.cause == "both":
        return shown
    if (parts[by.cause].ratio > 1) != (found.ratio > 1):
        return f"{_UNTOLD} ({shown})"
    (other,) = parts.keys() - {by.cause}
    not_other = f", not the {other}'s" if parts[other].verdict == "same" else ""
    is_c_code = is_c_code and by.cause == "code"
    where = "; bytecodes and objects are as before, so it is in C code" if is_c_code else ""
    return f"the {by.cause}'s{not_other} ({shown}){where}"


def adds_up(found: Comparison, by: CauseOfChange) -> bool:
    """Whether the parts come to the change: the same way, and as far as intervals can tell."""
    code, collector = by.code, by.collector
    low, high = (a + b - 1 for a, b in zip(code.ci95, collector.ci95, strict=True))
    same_way = (code.ratio + collector.ratio - 2) * (found.ratio - 1) > 0
    return same_way and low <= found.ci95[1] and found.ci95[0] <= high


def _stalls(found: StallChange) -> str:
    steps = fmt.count(found.steps)
    if found.verdict == "inconclusive":
        return (
            f"stalls are undecided: {found.after} steps of {steps} take longer than BASE's and "
            f"{found.before} of BASE's longer than these, which is "
            f"{fmt.interval(found.ci95)} of the host time; a larger --budget tells more."
        )
    of_base = "BASE", found.before, found.longest_before
    of_head = "HEAD", found.after, found.longest_after
    more, less = (of_head, of_base) if found.verdict == "worse" else (of_base, of_head)
    (side, count, longest), (other, fewer, shorter) = more, less
    against = f"{fewer} the other way round, by up to {fmt.seconds(shorter)}" if fewer else "none"
    return (
        f"{side} stalls: {count} steps of {steps} take far longer than {other}'s, by up to "
        f"{fmt.seconds(longest)}, against {against} "
        f"({fmt.percent(found.ratio - 1, signed=True)} of the host time)."
    )


def _undecided(what: str, comparison: Comparison) -> str:
    finds = (
        f"detect a change of {fmt.percent(comparison.mde)}; a larger --budget detects a smaller one"
        if comparison.mde <= MOST_DETECTED
        else f"detect no change below {fmt.percent(MOST_DETECTED)}: measure on a quieter machine"
    )
    rounds = f"{comparison.rounds} rounds, which {finds}"
    return f"{what} {_change(comparison)} is undecided after {rounds}."


def _change(comparison: Comparison) -> str:
    ratio = fmt.percent(comparison.ratio - 1, signed=True)
    return f"{ratio} ({fmt.interval(comparison.ci95)})"

"""What a gate found, in sentences: what changed, by how much, and whose doing it is."""

from collections.abc import Iterator, Sequence

from harness import format as fmt
from harness.experiment.result import Comparison
from harness.tracking.gate.result import ExactChange, GateCell, StallChange, TimingChange

_COLLECTIONS = "gc_collections_per_1000_steps"
_OBJECTS = (
    ("tracked_peak_per_step", "at its peak a step has {} tracked objects alive"),
    ("tracked_survivors_per_step", "a step leaves {} tracked objects behind"),
)
_BYTES = (
    ("handoff_bytes", "the hand-off of a step takes"),
    ("wire_bytes_per_step", "a step sends over the wire"),
)
_OF_A_REQUEST = {"add": "to add", "finish": "to admit and finish", "abort": "to abort"}
_CAUSES = {
    "code": "the code's, not the collector's",
    "collector": "the collector's, not the code's",
    "untold": "too noisy to say whether the code's or the collector's",
}


def conclude_gate(cells: Sequence[GateCell]) -> list[str]:
    """A sentence for each thing that changed, with the cells of which it holds; then the rest."""
    holds_for: dict[str, list[str]] = {}
    for cell in cells:
        for sentence in _cell_sentences(cell):
            holds_for.setdefault(sentence, []).append(cell.id)
    sentences = [
        f"{'Every cell' if 1 < len(ids) == len(cells) else '; '.join(ids)}: {sentence}"
        for sentence, ids in holds_for.items()
    ]
    same = [cell.id for cell in cells if cell.verdict == "same"]
    if same and len(same) < len(cells):
        sentences.append(f"Nothing changed in {len(same)} of {len(cells)}: {'; '.join(same)}.")
    elif same:
        sentences.append(f"Nothing changed: {'; '.join(same)}.")
    return sentences


def _cell_sentences(cell: GateCell) -> list[str]:
    changed = {change.metric: change for change in cell.exact if change.verdict != "same"}
    exact = list(_exact(changed, int(cell.axes["batch_size"])))
    if cell.timing is None:
        return exact
    is_counted = any(change.metric == "bytecodes_per_request_step" for change in cell.exact)
    return exact + _timing(cell.timing, is_c_code=is_counted and not changed)


def _exact(changed: dict[str, ExactChange], batch: int) -> Iterator[str]:
    collections = changed.get(_COLLECTIONS)
    runs = _runs(collections) if collections else ""  # said once, of the first that explains it
    said = {_COLLECTIONS}
    told: set[str] = set()
    for name, words in _OBJECTS:
        if change := changed.get(name):
            yield f"{words.format(_by(change))} ({_each(change, batch)} a request){runs}."
            said.add(name)
            told.add(change.verdict)
            runs = ""
    if made := changed.get("tracked_allocations_per_step"):
        said.add(made.metric)
        if made.verdict not in told:
            yield f"a step makes {_by(made)} tracked objects and keeps none of them{runs}."
            told.add(made.verdict)
            runs = ""
    if runs:
        yield f"tracked objects are as many as before{runs}."
    if code := changed.get("bytecodes_per_request_step"):
        said.add(code.metric)
        alone = "" if told else "; what the collector counts is as before"
        yield f"a request costs {_by(code)} bytecodes a step ({_from_to(code)}){alone}."
    for counted, noun in (("bytecodes", "bytecode"), ("allocations", "tracked object")):
        of_calls = {call: f"{counted}_per_{call}" for call in _OF_A_REQUEST}
        said.update(of_calls.values())
        if moved := {call: changed[name] for call, name in of_calls.items() if name in changed}:
            yield _per_request(moved, noun)
    for name, words in _BYTES:
        if size := changed.get(name):
            said.add(name)
            more = "more" if size.after > size.before else "fewer"
            yield f"{words} {more} bytes ({_from_to(size)})."
    for name, change in changed.items():
        is_of_all = name.startswith("gc_collections_gen")
        if name not in said and not (
            is_of_all and collections and change.verdict == collections.verdict
        ):
            yield f"{name} is {change.verdict} ({_from_to(change)})."


def _per_request(moved: dict[str, ExactChange], noun: str) -> str:
    """``moved`` by call; ``noun``: one of what is counted, said of the first alone."""
    parts: list[str] = []
    for call, change in moved.items():
        by = _by(change)
        counted = "" if parts else f" {noun}" if by.startswith("1 ") else f" {noun}s"
        parts.append(f"{by}{counted} {_OF_A_REQUEST[call]} ({_from_to(change)})")
    *first, last = parts
    return f"a request costs {' and '.join(filter(None, [', '.join(first), last]))}."


def _timing(timing: TimingChange, is_c_code: bool) -> list[str]:
    steady, mean, stalls = timing.steady, timing.mean, timing.stalls
    said = []
    if steady.verdict != "same":
        said.append(_host_time("host time per step", steady, timing, is_c_code=is_c_code))
    # A usual step that costs more makes the mean more, too: said once.
    if mean.verdict not in ("same", steady.verdict):
        usual = "a usual step takes what it did; " if steady.verdict == "same" else ""
        what = f"{usual}the mean host time per step"
        said.append(_host_time(what, mean, timing, is_c_code=is_c_code))
    if stalls is not None and stalls.verdict != "same":
        said.append(_stalls(stalls))
    return said


def _host_time(what: str, found: Comparison, timing: TimingChange, *, is_c_code: bool) -> str:
    if found.verdict == "inconclusive":
        return _undecided(what, found)
    changed = f"{what} {_change(found)}"
    if (by := timing.attribution) is None:
        return f"{changed}."
    control, code, collector = (
        fmt.percent(part.ratio - 1, signed=True) for part in (by.control, by.code, by.collector)
    )
    if by.cause == "both":
        return f"{changed}: {code} by the code, {collector} by the collector."
    where = "; bytecodes and objects are as before, so it is in C code" if is_c_code else ""
    why = _CAUSES[by.cause] + f" ({control} with the collector disabled)"
    return f"{changed}: {why}{where if by.cause == 'code' else ''}."


def _stalls(found: StallChange) -> str:
    low, high = (fmt.percent(bound - 1, signed=True) for bound in found.ci95)
    steps = fmt.count(found.steps)
    if found.verdict == "inconclusive":
        return (
            f"stalls are undecided: {found.after} steps of {steps} take longer than BASE's and "
            f"{found.before} of BASE's longer than these, which is {low.removesuffix(' %')} to "
            f"{high} of the host time; a larger --budget tells more."
        )
    side, other, count, longest = (
        ("HEAD", "BASE", found.after, found.longest_after)
        if found.verdict == "worse"
        else ("BASE", "HEAD", found.before, found.longest_before)
    )
    fewer = found.before if found.verdict == "worse" else found.after
    return (
        f"{side} stalls: {count} steps of {steps} take far longer than {other}'s, by up to "
        f"{fmt.seconds(longest)}, against {fewer} the other way round "
        f"({fmt.percent(found.ratio - 1, signed=True)} of the host time)."
    )


def _undecided(what: str, comparison: Comparison) -> str:
    return (
        f"{what} {_change(comparison)} is undecided after {comparison.rounds} rounds, "
        f"which find a change of {fmt.percent(comparison.mde)}; a larger --budget finds less."
    )


def _change(comparison: Comparison) -> str:
    low, high = (fmt.percent(bound - 1, signed=True) for bound in comparison.ci95)
    ratio = fmt.percent(comparison.ratio - 1, signed=True)
    return f"{ratio} ({low.removesuffix(' %')} to {high})"


def _runs(collections: ExactChange) -> str:
    after, before = (fmt.count(round(n)) for n in (collections.after, collections.before))
    return f", and the collector runs {after} times in 1,000 steps instead of {before}"


def _by(change: ExactChange) -> str:
    difference = change.after - change.before
    return f"{_short(abs(difference))} {'more' if difference > 0 else 'fewer'}"


def _each(change: ExactChange, batch: int) -> str:
    difference = (change.after - change.before) / batch
    return f"{'+' if difference > 0 else '-'}{_short(abs(difference))}"


def _short(value: float) -> str:
    """Whole numbers as such: a mean over steps may be 1,024.0."""
    return fmt.count(round(value)) if abs(value - round(value)) < 0.005 else fmt.count(value)


def _from_to(change: ExactChange) -> str:
    show = fmt.bytes_ if change.unit == "B" else fmt.count
    share = fmt.percent(change.after / change.before - 1, signed=True) if change.before else "new"
    return f"{share}, {show(change.before)} → {show(change.after)}"

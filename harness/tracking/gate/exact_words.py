"""What changed in a cell's exact counts, in sentences."""

from collections.abc import Iterator, Mapping, Set
from itertools import chain
from typing import NamedTuple

from msgspec.structs import replace

from harness import format as fmt
from harness.collector.callers import CollectorCall
from harness.metrics import METRICS, StepPart
from harness.tracking.gate.c_functions import PER_STEP
from harness.tracking.gate.result import CFunctionChange, ExactChange, GateCell
from harness.trial.growing_lines import GROWS_WITH, growing_words

BYTECODES = "bytecodes_per_request_step"
_COLLECTIONS, _BY_HAND = "gc_collections_per_1000_steps", "explicit_collections"
_SETTINGS = "collector_setting_calls"
_PEAK, _SURVIVORS = "tracked_peak_per_step", "tracked_survivors_per_step"
_MADE = "tracked_allocations_per_step"
_LEAKED, _LEAKED_BLOCKS = "leaked_objects_per_step", "leaked_blocks_per_step"
_KEPT_BLOCKS, _KEPT_BYTES = "allocated_blocks_kept_per_step", "memory_kept_per_step"
_LEAKED_BYTES = "leaked_bytes_per_"
_GARBAGE = "cyclic_garbage_per_step"
_MOST_LINES = 3
_OF_A_REQUEST = {
    "add": "to add",
    "finish": "to admit and finish",
    "abort": "to abort",
    "preempt": "to preempt",
}
_OF_A_PART: Mapping[StepPart, str] = {
    "fixed": "a step takes {} whatever its batch",
    "row": "each request takes {} of a step",
    "pair": "a step takes {} for each pair of its requests",
    "context": "a step takes {} for each token of its requests' context",
    "block": "each block of the KV cache takes {}",
    "block_step": "a step in which blocks begin or fill takes {}",
    "prompt": "each token of a prompt takes {}",
}
_COUNTED = {"bytecodes": "bytecode", "allocations": "tracked object"}
_OBJECTS = frozenset((_PEAK, _SURVIVORS, _MADE, _LEAKED))
_BYTES = (
    ("memory_peak_per_step", "at its peak a step takes {} bytes"),
    (_KEPT_BYTES, "a step leaves {} bytes behind"),
    ("handoff_bytes", "the hand-off of a step takes {} bytes"),
    ("wire_bytes_per_step", "a step sends {} bytes over the wire"),
)


class _Figures(NamedTuple):
    """``changed`` beyond the floor, by name; ``same`` below it, ``equal`` to the digit."""

    changed: Mapping[str, ExactChange]
    same: Set[str]
    equal: Set[str]
    batch: int

    def explained(self, name: str, by: str) -> bool:
        """Whether a change of the same sort says it already."""
        cause = self.changed.get(by)
        return cause is not None and cause.verdict == self.changed[name].verdict


def exact_sentences(cell: GateCell) -> list[str]:
    """A sentence for each thing that a cell's counts say; none where nothing changed."""
    changed = {change.metric: change for change in cell.exact if change.verdict != "same"}
    same = {change.metric for change in cell.exact} - changed.keys()
    equal = {change.metric for change in cell.exact if change.before == change.after}
    figures = _Figures(changed, same, equal, int(cell.axes["batch_size"]))
    return list(
        chain(
            _objects(figures),
            _left_for_good(figures),
            _growing(figures, cell),
            _by_hand(figures, cell),
            _bytecodes(figures),
            _instructions(figures, cell),
            _of_requests(figures),
            _of_parts(figures),
            _bytes(figures),
            _the_rest(figures),
            _beyond_waivers(figures),
            _beyond_budget(figures),
        )
    )


def difference_words(change: ExactChange) -> str:
    """How much more or less, of what: "+2.00 KiB at a step's peak"."""
    difference = change.after - change.before
    spends = ", beyond the budget" if change.overspends else ""
    return f"{signed_amount(difference, change.unit)} {counted_as(change.metric)}{spends}"


def counted_as(metric: str) -> str:
    """What so and so many of a metric are called."""
    return METRICS[metric].counted_as or metric


def signed_amount(difference: float, unit: str) -> str:
    """A difference of an exact metric, bytes as such."""
    sign = "+" if difference > 0 else "-"
    if unit == "B":
        return f"{sign}{fmt.bytes_(abs(difference))}"
    whole = bool(round(difference)) and abs(difference - round(difference)) < 0.005
    return f"{sign}{fmt.count(abs(round(difference) if whole else difference))}"


def _objects(figures: _Figures) -> Iterator[str]:
    """What feeds the collector, the first with how often it then runs."""
    found = list(_objects_alone(figures))
    if change := figures.changed.get(_COLLECTIONS):
        whole = round(change.after) != round(change.before)
        after, before = (fmt.count(round(n) if whole else n) for n in (change.after, change.before))
        runs = f"the collector runs {after} times in 1,000 steps instead of {before}"
        if not found and figures.equal >= {_PEAK, _SURVIVORS} and _MADE not in figures.changed:
            found = ["tracked objects are as many as before"]
        found[:1] = [f"{found[0]}, and {runs}" if found else runs]
    yield from (f"{each}." for each in found)


def _objects_alone(figures: _Figures) -> Iterator[str]:
    changed = figures.changed
    told: set[str] = set()
    if peak := changed.get(_PEAK):
        objects = f"{_more(peak, 'tracked object')} alive{_each(peak, figures.batch)}"
        yield f"at its peak a step has {objects}"
        told.add(peak.verdict)
    if (left := changed.get(_SURVIVORS)) and not figures.explained(_SURVIVORS, by=_LEAKED):
        objects = f"{_more(left, 'tracked object')} behind{_each(left, figures.batch)}"
        goes = ", which go when their requests do" if _LEAKED in figures.same else ""
        yield f"a step leaves {objects}{goes}"
        told.add(left.verdict)
    if (made := changed.get(_MADE)) and made.verdict not in told:
        alive = ", with as many tracked ones alive" if figures.equal >= {_PEAK, _SURVIVORS} else ""
        yield f"a step makes {_more(made, 'object')} that the collector counts{alive}"


def _left_for_good(figures: _Figures) -> Iterator[str]:
    changed = figures.changed
    if leaked := changed.get(_LEAKED):
        yield (
            f"a step leaves {_more(leaked, 'tracked object')} behind for good ({_from_to(leaked)})."
        )
    if (blocks := changed.get(_LEAKED_BLOCKS)) and not figures.explained(_LEAKED_BLOCKS, _LEAKED):
        untracked = " that the collector does not track" if _LEAKED in figures.same else ""
        yield (
            f"a step leaves {_more(blocks, 'block')} of memory behind for good{untracked} "
            f"({_from_to(blocks)})."
        )
    if garbage := changed.get(_GARBAGE):
        yield f"a step leaves {_more(garbage, 'object')} that only a collection can free."
    if kept := changed.get(_KEPT_BLOCKS):
        for_good = any(figures.explained(_KEPT_BLOCKS, by) for by in (_LEAKED, _LEAKED_BLOCKS))
        if not for_good and not figures.explained(_KEPT_BLOCKS, _SURVIVORS):
            yield f"a step leaves {_more(kept, 'block')} of memory behind ({_from_to(kept)})."


def _growing(figures: _Figures, cell: GateCell) -> Iterator[str]:
    """What is never freed, with the lines of the newer code that leave it."""
    names = [f"{_LEAKED_BYTES}{of}" for of in GROWS_WITH]
    if found := [figures.changed[name] for name in names if name in figures.changed]:
        parts = [f"{difference_words(each)} ({_from_to(each)})" for each in found]
        known = [replace(line, line=0) for line in cell.growing_before]
        lines = [
            growing_words(line) for line in cell.growing_after if replace(line, line=0) not in known
        ]
        where = "; ".join(["", *lines[:_MOST_LINES]])
        yield f"memory that is never freed: {' and '.join(parts)}{where}."


def _by_hand(figures: _Figures, cell: GateCell) -> Iterator[str]:
    """Who collects or sets the collector, where that is another number of times."""
    for metric, what, is_setting in ((_BY_HAND, "called", False), (_SETTINGS, "set", True)):
        if change := figures.changed.get(metric):
            times = "time" if abs(change.after - change.before) == 1 else "times"
            calls = (
                [call for call in side if (call.generation < 0) == is_setting]
                for side in (cell.calls_before, cell.calls_after)
            )
            where = "; ".join(_callers(*calls))
            by_whom = f" ({where})" if where else ""
            yield f"the collector is {what} by hand {_by(change, times)}{by_whom}."


def _callers(before: list[CollectorCall], after: list[CollectorCall]) -> Iterator[str]:
    """Each function whose number of calls is another, where it stands in the newer code."""
    counts: dict[tuple[str, str, str], int] = {}
    stands: dict[tuple[str, str, str], CollectorCall] = {}
    for calls, sign in ((before, -1), (after, 1)):
        for call in calls:
            key = (_called(call), call.file, call.function)
            counts[key] = counts.get(key, 0) + sign * call.count
            stands[key] = call
    for key, difference in sorted(counts.items(), key=lambda item: -abs(item[1])):
        if difference:
            call = stands[key]
            yield f"{_called(call)}, {call.file}:{call.line} in {call.function}"


def _called(call: CollectorCall) -> str:
    return f"gen {call.generation}" if call.generation >= 0 else f"gc.{call.name}"


def _bytecodes(figures: _Figures) -> Iterator[str]:
    if code := figures.changed.get(BYTECODES):
        counted = {_PEAK, _SURVIVORS, _MADE, _COLLECTIONS}
        alone = "; what the collector counts is as before" if counted <= figures.equal else ""
        yield f"a request costs {_more(code, 'bytecode')} per step ({_from_to(code)}){alone}."


def _instructions(figures: _Figures, cell: GateCell) -> Iterator[str]:
    if change := figures.changed.get(PER_STEP):
        named = ", ".join(map(c_function_words, cell.c_functions))
        where = f": {named}" if named else ""
        words = _more(change, "machine instruction")
        yield f"a request costs {words} per step ({_from_to(change)}){where}."


def c_function_words(found: CFunctionChange) -> str:
    """As: crc32_z of libz.so.1 +246."""
    return f"{found.function} of {found.library} {signed_amount(found.more, '')}"


def _of_requests(figures: _Figures) -> Iterator[str]:
    """What a request costs beside its steps; the noun is said of the first alone."""
    for counted, noun in _COUNTED.items():
        parts: list[str] = []
        for call, words in _OF_A_REQUEST.items():
            if change := figures.changed.get(f"{counted}_per_{call}"):
                by = _by(change) if parts else _more(change, noun)
                parts.append(f"{by} {words} ({_from_to(change)})")
        if parts:
            *first, last = parts
            yield f"a request costs {' and '.join(filter(None, [', '.join(first), last]))}."


def _of_parts(figures: _Figures) -> Iterator[str]:
    """What depends on batch and context, and how; what every request of a step costs, once."""
    for part, sentence in _OF_A_PART.items():
        change = figures.changed.get(name := f"bytecodes_per_{part}")
        if change and not (part == "row" and figures.explained(name, BYTECODES)):
            yield f"{sentence.format(_more(change, 'bytecode'))} ({_from_to(change)})."


def _bytes(figures: _Figures) -> Iterator[str]:
    for name, sentence in _BYTES:
        change = figures.changed.get(name)
        causes = (_LEAKED, _LEAKED_BLOCKS, _KEPT_BLOCKS, _SURVIVORS)
        if change and not (
            name == _KEPT_BYTES and any(figures.explained(name, by) for by in causes)
        ):
            more = "more" if change.after > change.before else "fewer"
            yield f"{sentence.format(more)} ({_from_to(change)})."


def _the_rest(figures: _Figures) -> Iterator[str]:
    said = {
        *_OBJECTS,
        _COLLECTIONS,
        _LEAKED_BLOCKS,
        _KEPT_BLOCKS,
        _GARBAGE,
        _BY_HAND,
        _SETTINGS,
        BYTECODES,
        PER_STEP,
    }
    said.update(name for name, _ in _BYTES)
    said.update(f"{_LEAKED_BYTES}{each}" for each in GROWS_WITH)
    said.update(f"{counted}_per_{call}" for counted in _COUNTED for call in _OF_A_REQUEST)
    said.update(f"bytecodes_per_{part}" for part in _OF_A_PART)
    for name, change in figures.changed.items():
        by_generation = name.startswith("gc_collections_gen")
        if name not in said and not (by_generation and figures.explained(name, _COLLECTIONS)):
            yield f"{name} is {change.verdict} ({_from_to(change)})."


def _more(change: ExactChange, noun: str) -> str:
    one = _size(change.after - change.before) == "1"
    return f"{_by(change)} {noun}{'' if one else 's'}"


def _by(change: ExactChange, noun: str = "") -> str:
    difference = change.after - change.before
    words = (_size(difference), noun, "more" if difference > 0 else "fewer")
    return " ".join(filter(None, words))


def _each(change: ExactChange, batch: int) -> str:
    """What it is for each request, where that is a number to speak of."""
    difference = (change.after - change.before) / batch
    if abs(difference) < 0.005:
        return ""
    return f" ({'+' if difference > 0 else '-'}{_short(abs(difference))} per request)"


def _size(difference: float) -> str:
    """A difference, which is not 0."""
    return fmt.count(abs(difference)) if abs(difference) < 0.005 else _short(abs(difference))


def _short(value: float) -> str:
    """Whole numbers as such: a mean over steps may be 1,024.0."""
    return fmt.count(round(value)) if abs(value - round(value)) < 0.005 else fmt.count(value)


def _from_to(change: ExactChange) -> str:
    show = fmt.bytes_ if change.unit == "B" else _short
    both = f"{show(change.before)} → {show(change.after)}"
    if change.before <= 0 or change.before < 0.05 <= change.after:
        return both
    return f"{fmt.percent(change.after / change.before - 1, signed=True)}, {both}"


def _beyond_budget(figures: _Figures) -> Iterator[str]:
    """What spends more than may be added since a release."""
    for name, change in figures.changed.items():
        if change.verdict == "worse" and change.overspends:
            grown, most, mine = (
                signed_amount(each, change.unit)
                for each in (change.grown, change.budget, change.loss)
            )
            yield (
                f"{name} has grown by {grown[1:]} since the release that gate-accepts.toml names, "
                f"where {most[1:]} may be added; {mine[1:]} of it is this change."
            )


def _beyond_waivers(figures: _Figures) -> Iterator[str]:
    """What is worse by more than is accepted."""
    for name, change in figures.changed.items():
        if change.verdict == "worse" and change.accepts:
            beyond = signed_amount(change.loss - change.accepts, change.unit)[1:]
            accepted = signed_amount(change.accepts, change.unit)[1:]
            yield f"{name} is worse by {beyond} more than the {accepted} that are accepted."

"""A gate's report: the verdict, what was counted, what was timed, and how to see it again."""

from collections.abc import Sequence
from functools import partial

from harness import format as fmt
from harness.render.report import Listing, Picture, Report, known, remarks
from harness.report.function_words import short_name
from harness.report.gate_image import gate_image, has_picture
from harness.report.gate_power import power_words, settles_no_times
from harness.report.gate_tables import (
    command_lines,
    gate_facts,
    gate_failure_lines,
    gate_findings,
    gate_tables,
    not_run_words,
)
from harness.report.gate_title import title
from harness.report.gate_waivers import accepted_words, trailer_lines, unused_words
from harness.report.power import surroundings_words
from harness.report.what_to_do import GATE_ADVICE
from harness.tracking.gate.c_functions import PER_STEP
from harness.tracking.gate.exact_words import BYTECODES, c_function_words, difference_words
from harness.tracking.gate.result import ExactChange, GateCell, GateResult, TimingChange
from harness.tracking.gate.words import adds_up, time_sentences

MOST_COUNTS = 3
_MOST_OUTSIDE = 6

_TELLING = (
    "tracked_peak_per_step",
    "tracked_survivors_per_step",
    "leaked_objects_per_step",
    "leaked_blocks_per_step",
    "leaked_bytes_per_request",
    "leaked_bytes_per_block",
    "leaked_bytes_per_step",
    "cyclic_garbage_per_step",
    BYTECODES,
    PER_STEP,
    "gc_collections_per_1000_steps",
    "explicit_collections",
    "collector_setting_calls",
    "tracked_allocations_per_step",
    "bytecodes_per_add",
    "bytecodes_per_finish",
    "bytecodes_per_abort",
    "bytecodes_per_preempt",
    "allocations_per_add",
    "allocations_per_finish",
    "allocations_per_abort",
    "allocations_per_preempt",
    "memory_peak_per_step",
    "memory_kept_per_step",
    "allocated_blocks_kept_per_step",
    "handoff_bytes",
    "wire_bytes_per_step",
)
"""Counts, the most telling first."""

_COUNTED = "in the engine's process; equal commits differ by nothing"


def describe_gate(result: GateResult) -> Report:
    """All that is known of a gate."""
    surroundings = result.surroundings
    return Report(
        heading="gcbench gate",
        name=result.name,
        answer=title(result),
        advice=GATE_ADVICE[result.verdict],
        attention=fmt.capitalised(settles_no_times(result)),
        short=known(_short(result)),
        sentences=gate_findings(result),
        lists=[
            Listing("Not measured", result.missing, is_bad=True),
            Listing("Trials without a result", gate_failure_lines(result), is_bad=True),
            *remarks(result),
        ],
        next=[
            *(("again", each) for each in command_lines(result)),
            *(("accept", each) for each in trailer_lines(result)),
        ],
        sure=known(
            [
                ("counted", _COUNTED if any(cell.exact for cell in result.cells) else ""),
                ("surroundings", surroundings_words(surroundings)),
                ("detects", power_words(result)),
            ]
        ),
        more=gate_tables(result),
        facts=gate_facts(result),
        command=result.command,
        pictures=[
            Picture(
                "What changed",
                "The counts that changed, and the change of host time per step with its 95 % "
                "interval and its causes; the grey band is what counts as the same.",
                partial(gate_image, result),
            )
        ]
        if has_picture(result)
        else [],
    )


def _short(result: GateResult) -> list[tuple[str, str]]:
    """What was found, cells that say the same together."""
    cells = result.cells
    return [
        *_labelled("accepted", accepted_words(result)),
        *_by_cell("exact", [(cell.id, exact_words(cell)) for cell in cells]),
        *_by_cell("where", [(cell.id, where_words(cell)) for cell in cells]),
        *_by_cell("in C", [(cell.id, c_words(cell)) for cell in cells]),
        ("not run", not_run_words(result)),
        ("outside", _outside_words(result)),
        *_by_cell("not told", [(cell.id, " ".join(cell.untold)) for cell in cells]),
        *_by_cell("time", [(cell.id, time_words(cell, result.tolerance)) for cell in cells]),
        *_labelled("unused", unused_words(result)),
    ]


def _outside_words(result: GateResult) -> str:
    if not result.outside:
        return ""
    named = ", ".join(result.outside[:_MOST_OUTSIDE])
    others = ", …" if len(result.outside) > _MOST_OUTSIDE else ""
    return (
        f"they also differ in {named}{others}, beside {result.package}/: not compared, both ran "
        "with what is installed."
    )


def exact_words(cell: GateCell) -> str:
    """The differences of a cell's counts, those of its verdict first.

    Where none decides, those that moved by less than their floor.
    """
    if not cell.exact:
        return "nothing is counted exactly here"
    if changed := [change for change in cell.exact if change.verdict != "same"]:
        return _differences(changed)
    if moved := [change for change in cell.exact if change.before != change.after]:
        return f"{_differences(moved)}; too little to act upon"
    return f"no change in {len(cell.exact)} counts"


def _differences(changes: Sequence[ExactChange]) -> str:
    order = {name: place for place, name in enumerate(_TELLING)}
    changes = sorted(
        changes,
        key=lambda change: (change.verdict != "worse", order.get(change.metric, len(order))),
    )
    shown = [_difference(change) for change in changes[:MOST_COUNTS]]
    more = len(changes) - len(shown)
    return ", ".join(shown) + (f", and {more} more" if more else "")


def where_words(cell: GateCell) -> str:
    """The function that changed most, with its line; "" where none has."""
    if not cell.functions:
        return ""
    first, more = cell.functions[0], len(cell.functions) - 1
    others = f", and {more} more" if more else ""
    return f"{short_name(first.function)}, {first.file}:{first.line}{others}"


def c_words(cell: GateCell) -> str:
    """The C functions whose instructions changed most."""
    return ", ".join(map(c_function_words, cell.c_functions))


def time_words(cell: GateCell, tolerance: float) -> str:
    """How a cell's host time has changed and whose doing that is; "" where it was not timed."""
    timing = cell.timing
    if timing is None:
        return ""
    if timing.verdict == "same":
        return f"same, within ±{fmt.rough_percent(tolerance)}"
    if timing.steady.verdict not in ("better", "worse") or timing.verdict != timing.steady.verdict:
        return " ".join(time_sentences(cell))
    change = fmt.percent(timing.steady.ratio - 1, signed=True)
    return f"{change} (95 %: {fmt.interval(timing.steady.ci95)}){_parts(timing)}"


def _parts(timing: TimingChange) -> str:
    by = timing.attribution
    if by is None:
        return ""
    if by.cause == "untold" or not adds_up(timing.steady, by):
        return "; too noisy to tell code from collector"
    code, collector = (fmt.percent(part.ratio - 1, signed=True) for part in (by.code, by.collector))
    return f" = code {code}, collector {collector}"


def _difference(change: ExactChange) -> str:
    accepted = " (accepted)" if change.verdict == "accepted" else ""
    return f"{difference_words(change)}{accepted}"


def _by_cell(label: str, found: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """A line for all cells, or one for each that differ."""
    cells: dict[str, list[str]] = {}
    for cell, words in found:
        if words:
            cells.setdefault(words, []).append(cell)
    if len(cells) == 1 and sum(map(len, cells.values())) == len(found):
        return [(label, next(iter(cells)))]
    lines = [line for words, ids in cells.items() for line in (f"{'; '.join(ids)}:", f"  {words}")]
    return _labelled(label, lines)


def _labelled(label: str, lines: Sequence[str]) -> list[tuple[str, str]]:
    return [(label if number == 0 else "", line) for number, line in enumerate(lines)]

"""What `gcbench explain` shows of one version or two: stages, functions and lines."""

from collections.abc import Sequence

from gcbench.function_costs import FunctionCost
from harness import format as fmt
from harness.explain.beneath import beneath
from harness.explain.ranking import amount, by_change, by_line_change
from harness.explain.result import By, FunctionChange, FunctionPlace, FunctionsBody, Side
from harness.explain.sources import Sources
from harness.explain.version_cost import version_cost
from harness.render.table import PlainTable, Row
from harness.report.function_words import (
    OF_A_STEP,
    beneath_lines,
    cost_words,
    short_name,
    shortened,
    signed,
)
from harness.report.version_costs import (
    difference_sentence,
    heading,
    joined_texts,
    sampling_sentences,
    stages_table,
)
from harness.trial.step_costs import RequestFunctionCost, is_told

_NAMED = 5
"""Functions that the answer names."""
_CALLS = {
    "add": "added",
    "finish": "served and finished",
    "abort": "aborted",
    "preempt": "preempted",
}


def functions_answer(body: FunctionsBody) -> list[str]:
    """The answer, a sentence each."""
    if body.against is None:
        sentences = _single(body.side, body.by)
        return sentences + sampling_sentences([version_cost(body.side)])
    after, before = version_cost(body.side), version_cost(body.against)
    return [
        difference_sentence(before, after),
        *_beside_its_steps(body.side, body.against),
        _most_changed(body, body.against),
        *sampling_sentences([after, before]),
    ]


def functions_tables(body: FunctionsBody, rows: int) -> list[PlainTable]:
    """All tables, ``rows`` functions and as many lines."""
    side, against = body.side, body.against
    stages = stages_table([version_cost(each) for each in (against, side) if each])
    if against is None:
        tables = [_functions(side, body.by, rows), _lines(side, body.by, rows)]
    else:
        tables = [_changes(body, against, rows), _line_changes(body, rows)]
    return [stages, *tables, _per_request(side, against)]


def _single(side: Side, by: By) -> list[str]:
    costs, whole = side.costs, version_cost(side)
    dearest = _ranked(side, by)[:_NAMED]
    share = sum(map(amount(by), dearest)) / max(1, sum(map(amount(by), costs.functions)))
    return [
        f"{side.label} executes {cost_words(whole.bytecodes)} bytecodes and makes "
        f"{cost_words(whole.objects)} tracked objects per request and step.",
        f"{len(dearest)} of {len(costs.functions)} functions account for {fmt.percent(share)} of "
        f"the {by}: {joined_texts(short_name(each.name) for each in dearest)}.",
    ]


def _most_changed(body: FunctionsBody, against: Side) -> str:
    side, by = body.side, body.by
    changes = by_change(body.changes, against, side, by)
    if not changes:
        return f"No function differs in {by}."
    named = joined_texts(
        f"{_name(each)} ({signed(_change(each, side, against, by))})" for each in changes[:_NAMED]
    )
    share = sum(_change(each, side, against, by) for each in changes[:_NAMED])
    total = _total(side, by) - _total(against, by)
    of = f", together {signed(share)} of {signed(total)}" if len(changes) > 1 else ""
    return f"What changed most in {by}: {named}{of}."


def _beside_its_steps(side: Side, against: Side) -> list[str]:
    """What a request takes more or fewer bytecodes for than its steps show."""
    changed = []
    for call, words in _CALLS.items():
        now, then = (
            sum(each.bytecodes for each in one.costs.per_request.get(call, []))
            for one in (side, against)
        )
        if round(now - then, 6) and is_told(call, side.costs, against.costs):
            share = f", {fmt.percent(now / then - 1, signed=True)}" if then else ""
            changed.append(f"to be {words} ({signed(now - then)}{share})")
    if not changed:
        return []
    return [f"Beside its steps a request takes other bytecodes {joined_texts(changed)}."]


def _functions(side: Side, by: By, rows: int) -> PlainTable:
    costs = side.costs
    total = max(1, sum(map(amount(by), costs.functions)))
    shown = _ranked(side, by)[:rows]
    return PlainTable(
        f"Functions, the most {by} first",
        (
            "function",
            "calls\n/step",
            "own\nbytecodes",
            "with what\nit calls",
            "own\nobjects",
            f"share of\n{by}",
        ),
        [
            [
                (
                    f"{short_name(each.name)}\n  {_place(FunctionPlace.of(each))}",
                    cost_words(each.calls / costs.num_steps),
                    cost_words(each.bytecodes / costs.num_rows),
                    cost_words(each.all_bytecodes / costs.num_rows),
                    cost_words(each.allocations / costs.num_rows),
                    fmt.percent(amount(by)(each) / total),
                )
                for each in shown
            ]
        ],
        _left_out(len(costs.functions) - len(shown), "functions"),
    )


def _lines(side: Side, by: By, rows: int) -> PlainTable:
    per_row, sources = side.costs.num_rows, Sources(side.roots)
    lines = [(each, line) for each in side.costs.functions for line in each.lines]
    place = {"bytecodes": 1, "objects": 2}[by]
    lines.sort(key=lambda each: (-each[1][place], -each[1].net))
    return PlainTable(
        f"Lines, the most {by} first",
        ("line", "bytecodes", "objects", "kept"),
        [
            [
                (
                    _line_words(
                        each.file, line.line, each.name, sources.line(each.file, line.line)
                    ),
                    cost_words(line.bytecodes / per_row),
                    cost_words(line.allocations / per_row),
                    cost_words(line.net / per_row),
                )
                for each, line in lines[:rows]
            ]
        ],
        "kept: objects made less objects freed in the line",
    )


def _changes(body: FunctionsBody, against: Side, rows: int) -> PlainTable:
    side, by = body.side, body.by
    changes = by_change(body.changes, against, side, by)
    return PlainTable(
        f"Functions, the largest change in {by} first",
        (
            "function",
            f"bytecodes\n{heading(against.label)}",
            f"bytecodes\n{heading(side.label)}",
            "\nchange",
            "objects\nchange",
        ),
        [
            [
                (
                    "\n".join(
                        [
                            f"{_name(each)}{_note(each)}",
                            f"  {_place((each.after or each.before)[0])}",
                            *beneath_lines(beneath(each, against, side)),
                        ]
                    ),
                    cost_words(each.costs_before.bytecodes / against.costs.num_rows)
                    if each.before
                    else fmt.MISSING,
                    cost_words(each.costs_after.bytecodes / side.costs.num_rows)
                    if each.after
                    else fmt.MISSING,
                    signed(_change(each, side, against, "bytecodes")),
                    signed(_change(each, side, against, "objects")),
                )
                for each in changes[:rows]
            ]
        ],
        f"{OF_A_STEP}; "
        + (_left_out(len(changes) - rows, "functions that changed") or "all that changed"),
    )


def _line_changes(body: FunctionsBody, rows: int) -> PlainTable:
    lines = by_line_change(body.lines, body.by)[:rows]
    return PlainTable(
        f"Lines, the largest change in {body.by} first",
        ("line", "bytecodes", "objects", "kept"),
        [
            [
                (
                    _line_words(
                        each.file,
                        each.line,
                        each.function,
                        f"{'- ' if each.is_gone else ''}{each.text}",
                    ),
                    signed(each.bytecodes),
                    signed(each.allocations),
                    signed(each.net),
                )
                for each in lines
            ]
        ],
        "more or less per request and step, with unchanged functions that a changed one calls "
        "there; kept: objects made less objects freed",
    )


def _per_request(side: Side, against: Side | None) -> PlainTable:
    rows = []
    for call, words in _CALLS.items():
        now = side.costs.per_request.get(call, [])
        then = against.costs.per_request.get(call, []) if against else []
        if (now or then) and is_told(call, side.costs, against.costs if against else None):
            rows.append([_request_row(f"all, to be {words}", now, then, against)])
            for name in _dearest_names(now, then):
                mine, theirs = ([each for each in one if each.name == name] for one in (now, then))
                rows[-1].append(_request_row(f"  {short_name(name)}", mine, theirs, against))
    columns: Row = ("what a request takes", "bytecodes", "objects")
    if against is not None:
        columns = ("what a request takes", "bytecodes", "change", "objects", "change")
    return PlainTable("Beside its steps, per request", columns, rows)


def _request_row(
    name: str,
    now: Sequence[RequestFunctionCost],
    then: Sequence[RequestFunctionCost],
    against: Side | None,
) -> Row:
    cells = [name]
    for attribute in ("bytecodes", "allocations"):
        a, b = (round(sum(getattr(each, attribute) for each in side), 6) for side in (now, then))
        cells += [cost_words(a), *([signed(a - b)] if against else [])]
    return tuple(cells)


def _dearest_names(
    now: Sequence[RequestFunctionCost], then: Sequence[RequestFunctionCost]
) -> list[str]:
    """Names of the three functions that changed most, or cost most where nothing is beside them."""
    change: dict[str, float] = {}
    for sign, side in ((1, now), (-1, then)):
        for each in side:
            change[each.name] = change.get(each.name, 0.0) + sign * each.bytecodes
    found = [name for name in sorted(change, key=lambda name: -abs(change[name])) if change[name]]
    return found[:3]


def _ranked(side: Side, by: By) -> list[FunctionCost]:
    return sorted(side.costs.functions, key=lambda each: -amount(by)(each))


def _change(change: FunctionChange, side: Side, against: Side, by: By) -> float:
    of = amount(by)
    return of(change.costs_after) / side.costs.num_rows - (
        of(change.costs_before) / against.costs.num_rows
    )


def _total(side: Side, by: By) -> float:
    return sum(map(amount(by), side.costs.functions)) / side.costs.num_rows


def _name(change: FunctionChange) -> str:
    return " + ".join(short_name(each.name) for each in change.after or change.before)


def _note(change: FunctionChange) -> str:
    """What became of the function, where it is not simply there in both."""
    was = " + ".join(short_name(each.name) for each in change.before)
    match change.kind:
        case "moved":
            return f" (from {change.before[0].file})"
        case "renamed" | "split" | "joined":
            return f" ({change.kind}, was {was})"
        case "new" | "gone":
            return f" ({change.kind})"
    return ""


def _place(where: FunctionPlace) -> str:
    return f"{where.file}:{where.line}"


def _line_words(file: str, line: int, function: str, text: str) -> str:
    return f"{file}:{line}\n  {shortened(text) or short_name(function)}"


def _left_out(count: int, what: str) -> str:
    return f"{count:,} more {what} are in --json FILE" if count > 0 else ""

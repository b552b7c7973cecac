"""What `gcbench explain` shows: the answer in sentences, then stages, functions and lines."""

from collections.abc import Iterable, Sequence

from gcbench.function_costs import FunctionCost
from harness import format as fmt
from harness.explain.ranking import By, amount, by_change, by_line_change
from harness.explain.result import ExplainResult, FunctionChange, Side, Where
from harness.explain.sampling import relative_half_width
from harness.explain.sources import Sources
from harness.report.function_words import figure, short_name, signed
from harness.report.header import machine_words
from harness.report.table import PlainTable, Row
from harness.trial.step_costs import RequestFunctionCost, is_told

_NAMED = 5
"""Functions that the answer names."""
_WIDEST_TEXT = 46
_CALLS = {"add": "added", "finish": "served and finished", "abort": "aborted"}


def explain_header(result: ExplainResult) -> list[tuple[str, str]]:
    """What was counted, on what."""
    side = result.side
    costs = side.costs
    which = f"steps, one in {costs.every}" if costs.every else "steps of a full batch"
    steps = f"{costs.num_steps} {which}, {fmt.count(costs.num_rows)} outputs"
    return [
        ("versions", " against ".join(each.label for each in (side, result.against) if each)),
        ("machine", machine_words(result.machine)),
        ("workload", result.workload.name),
        ("cell", ", ".join(f"{axis} {value}" for axis, value in result.axes.items())),
        ("counted", steps),
        ("command", result.command),
    ]


def explain_answer(result: ExplainResult, by: By) -> list[str]:
    """The answer, a sentence each."""
    against, side = result.against, result.side
    sentences = _difference(result, against, by) if against else _single(side, by)
    return sentences + _sampling_words([each for each in (side, against) if each])


def _sampling_words(sides: Sequence[Side]) -> list[str]:
    if not (every := sides[0].costs.every):
        return []
    widths = [relative_half_width(each.costs.samples, every) for each in sides]
    known = [
        f"±{fmt.percent(width)}" + f" for {each.label}" * (len(sides) > 1)
        for each, width in zip(sides, widths, strict=True)
        if width is not None
    ]
    sure = f"; bytecodes are right within {_and(known)} (95 %)" if known else ""
    return [f"One step in {every} was traced{sure}."]


def explain_tables(result: ExplainResult, by: By, rows: int) -> list[PlainTable]:
    """All tables, ``rows`` functions and as many lines."""
    if result.against is None:
        tables = [_stages(result.side), _functions(result.side, by, rows), _lines(result, by, rows)]
        return [*tables, _per_request(result.side, None)]
    against = result.against
    return [
        _stages(result.side, against),
        _changes(result, against, by, rows),
        _line_changes(result, by, rows),
        _per_request(result.side, against),
    ]


def _single(side: Side, by: By) -> list[str]:
    costs = side.costs
    dearest = _ranked(side, by)[:_NAMED]
    share = sum(map(amount(by), dearest)) / max(1, sum(map(amount(by), costs.functions)))
    return [
        f"{side.label} executes {_per_row(side, 'bytecodes')} bytecodes and makes "
        f"{_per_row(side, 'objects')} tracked objects per request and step.",
        f"{len(dearest)} of {len(costs.functions)} functions account for {fmt.percent(share)} of "
        f"the {by}: {_and(short_name(each.name) for each in dearest)}.",
    ]


def _difference(result: ExplainResult, against: Side, by: By) -> list[str]:
    side = result.side
    sentences = [
        f"{side.label} executes {_more(side, against, 'bytecodes')} bytecodes per request and step "
        f"than {against.label} {_both(side, against, 'bytecodes')}, and makes "
        f"{_more(side, against, 'objects')} tracked objects {_both(side, against, 'objects')}."
    ]
    changes = by_change(result.changes, against, side, by)
    total = _total(side, by) - _total(against, by)
    if not changes:
        return [*sentences, f"No function differs in {by}."]
    named = _and(
        f"{_name(each)} ({signed(_change(each, side, against, by))})" for each in changes[:_NAMED]
    )
    share = sum(_change(each, side, against, by) for each in changes[:_NAMED])
    of = f", together {signed(share)} of {signed(total)}" if len(changes) > 1 else ""
    return [*sentences, f"What changed most in {by}: {named}{of}."]


def _more(side: Side, against: Side, by: By) -> str:
    more = _total(side, by) - _total(against, by)
    return f"{figure(abs(more))} {'more' if more > 0 else 'fewer'}" if more else "as many"


def _both(side: Side, against: Side, by: By) -> str:
    now, then = _total(side, by), _total(against, by)
    if now == then:
        return f"({figure(now)})"
    share = f", {fmt.percent(now / then - 1, signed=True)}" if then else ""
    return f"({figure(now)} against {figure(then)}{share})"


def _stages(side: Side, against: Side | None = None) -> PlainTable:
    sides = [each for each in (against, side) if each]
    stages = dict.fromkeys(each.stage for one in sides for each in one.costs.functions)
    figures = {
        stage: [
            sum(of(each) for each in one.costs.functions if each.stage == stage)
            / one.costs.num_rows
            for of in (amount("bytecodes"), amount("objects"))
            for one in sides
        ]
        for stage in stages
    }
    order = sorted(figures, key=lambda stage: -figures[stage][len(sides) - 1])
    totals = [sum(column) for column in zip(*figures.values(), strict=True)]
    rows = [
        [_stage_row(stage, figures[stage], len(sides)) for stage in order],
        [_stage_row("all", totals, len(sides))],
    ]
    labels = [_heading(each) for each in sides]
    if against is None:
        columns: Row = ("stage", "bytecodes", "objects")
    else:
        columns = (
            "stage",
            *(f"bytecodes\n{label}" for label in labels),
            "\nchange",
            *(f"objects\n{label}" for label in labels),
            "\nchange",
        )
    return PlainTable(
        "By stage, per request and step",
        columns,
        rows,
        "objects: tracked objects made, gross; what is freed in the same step counts too",
    )


def _heading(side: Side) -> str:
    """Its label; of a commit's the name and the hash one below the other."""
    return side.label.replace(" (", "\n(")


def _stage_row(name: str, figures: Sequence[float], num_sides: int) -> Row:
    bytecodes, objects = figures[:num_sides], figures[num_sides:]
    cells = [name]
    for each in (bytecodes, objects):
        cells += map(figure, each)
        if num_sides == 2:
            cells.append(signed(each[1] - each[0]))
    return tuple(cells)


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
                    f"{short_name(each.name)}\n  {_place(Where(each.file, each.name, each.line))}",
                    figure(each.calls / costs.num_steps),
                    figure(each.bytecodes / costs.num_rows),
                    figure(each.all_bytecodes / costs.num_rows),
                    figure(each.allocations / costs.num_rows),
                    fmt.percent(amount(by)(each) / total),
                )
                for each in shown
            ]
        ],
        _left_out(len(costs.functions) - len(shown), "functions"),
    )


def _lines(result: ExplainResult, by: By, rows: int) -> PlainTable:
    per_row, sources = result.side.costs.num_rows, Sources(result.side.roots)
    lines = [(each, line) for each in result.side.costs.functions for line in each.lines]
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
                    figure(line.bytecodes / per_row),
                    figure(line.allocations / per_row),
                    figure(line.net / per_row),
                )
                for each, line in lines[:rows]
            ]
        ],
        "kept: objects made less objects freed in the line",
    )


def _changes(result: ExplainResult, against: Side, by: By, rows: int) -> PlainTable:
    side = result.side
    changes = by_change(result.changes, against, side, by)
    return PlainTable(
        f"Functions, the largest change in {by} first",
        (
            "function",
            f"bytecodes\n{_heading(against)}",
            f"bytecodes\n{_heading(side)}",
            "\nchange",
            "objects\nchange",
        ),
        [
            [
                (
                    f"{_name(each)}{_note(each)}\n  {_place((each.after or each.before)[0])}",
                    figure(each.costs_before.bytecodes / against.costs.num_rows)
                    if each.before
                    else fmt.MISSING,
                    figure(each.costs_after.bytecodes / side.costs.num_rows)
                    if each.after
                    else fmt.MISSING,
                    signed(_change(each, side, against, "bytecodes")),
                    signed(_change(each, side, against, "objects")),
                )
                for each in changes[:rows]
            ]
        ],
        "per request and step, each function's own; "
        + (_left_out(len(changes) - rows, "functions that changed") or "all that changed"),
    )


def _line_changes(result: ExplainResult, by: By, rows: int) -> PlainTable:
    lines = by_line_change(result.lines, by)[:rows]
    return PlainTable(
        f"Lines, the largest change in {by} first",
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
        "more or less per request and step; kept: objects made less objects freed in the line",
    )


def _per_request(side: Side, against: Side | None) -> PlainTable:
    rows = []
    for call, words in _CALLS.items():
        now = side.costs.per_request.get(call, [])
        then = against.costs.per_request.get(call, []) if against else []
        if (now or then) and is_told(call, side.costs, against.costs if against else None):
            rows.append([_request_row(f"all, to be {words}", now, then, against)])
            for name in _most_changed(now, then):
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
        cells += [figure(a), *([signed(a - b)] if against else [])]
    return tuple(cells)


def _most_changed(
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


def _per_row(side: Side, by: By) -> str:
    return figure(_total(side, by))


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


def _place(where: Where) -> str:
    return f"{where.file}:{where.line}"


def _line_words(file: str, line: int, function: str, text: str) -> str:
    shown = text if len(text) <= _WIDEST_TEXT else f"{text[: _WIDEST_TEXT - 1]}…"
    return f"{file}:{line}\n  {shown or short_name(function)}"


def _and(texts: Iterable[str]) -> str:
    *most, last = texts
    return f"{', '.join(most)} and {last}" if most else last


def _left_out(count: int, what: str) -> str:
    return f"{count:,} more {what} are in --json FILE" if count > 0 else ""

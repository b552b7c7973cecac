"""How functions and what they cost are said: names, figures, and the table of what changed most."""

from collections.abc import Mapping, Sequence

from harness.explain.beneath import Beneath
from harness.explain.largest_changes import LargestChange
from harness.metrics import When
from harness.render.table import PlainTable, Row

_MOST_ARGUMENTS = 3
_WIDEST_TEXT = 46
_WIDEST_NAME = 28
_MOST_BENEATH = 3
OF_A_STEP = "per request and step, own and unchanged code that a changed function calls"
_OF_A_REQUEST = "per request, each function's own"
_WHEN: Mapping[When, str] = {
    "step": "",
    "add": ", as a request is added",
    "finish": ", as a request is served",
    "abort": ", as a request is aborted",
    "preempt": ", as a request is preempted",
    "fixed": ", of a step whatever its batch",
    "row": ", for each request in a step",
    "pair": ", for each pair of requests",
    "context": ", for each token of context",
    "block": ", for each block of the KV cache",
    "block_step": ", of a step in which blocks begin or fill",
    "prompt": ", for each token of a prompt",
}


def largest_changes_table(title: str, changes: Sequence[LargestChange]) -> PlainTable:
    """Which functions a change is mostly made of; steps and each part of a request's life apart."""
    groups: dict[When, list[Row]] = {}
    for each in changes:
        groups.setdefault(each.when, []).append(_row(each))
    caption = OF_A_STEP if "step" in groups else ""
    if groups.keys() - {"step"}:
        caption += "; else per request, each function's own" if caption else _OF_A_REQUEST
    return PlainTable(
        title, ("function", "bytecodes", "objects"), list(groups.values()), f"{caption}."
    )


def _row(each: LargestChange) -> Row:
    was = {"new": " (new)", "gone": " (gone)"}.get(each.kind, "")
    if not was and each.before != each.function:
        was = f" (was {short_name(each.before)})"
    name = f"{short_name(each.function)}{was}{_WHEN[each.when]}"
    place = f"  {each.file}:{each.line}"
    words = [name, place, *([f"  {shortened(each.text)}"] if each.text else [])]
    words += beneath_lines(each.beneath)
    return "\n".join(words), signed(each.bytecodes), signed(each.allocations)


def beneath_lines(functions: Sequence[Beneath]) -> list[str]:
    """Unchanged functions in which a change ran, with their bytecodes, else their objects."""
    return [
        f"    in {shortened(short_name(each.function), _WIDEST_NAME)} "
        + (signed(each.bytecodes) if each.bytecodes else f"{signed(each.allocations)} objects")
        for each in functions[:_MOST_BENEATH]
    ]


def shortened(text: str, width: int = _WIDEST_TEXT) -> str:
    """A line of source, cut where a table has no room for it."""
    return text if len(text) <= width else f"{text[: width - 1]}…"


def short_name(name: str) -> str:
    """A function's name; of one that was made from a string the first of its arguments."""
    function, bracket, arguments = name.partition("(")
    named = arguments.removesuffix(")").split(", ")
    if not bracket or len(named) <= _MOST_ARGUMENTS:
        return name
    return f"{function.rpartition('.')[2]}({', '.join(named[:_MOST_ARGUMENTS])}, …)"


def cost_words(value: float) -> str:
    """A tenth of a bytecode is told, and of few objects a hundredth."""
    return f"{value:,.1f}" if abs(value) >= 99.95 else f"{value:,.2f}"


def signed(value: float) -> str:
    """A change, with its sign."""
    text = cost_words(value)
    if not text.strip("-0.,"):
        return "0"
    return text if value < 0 else f"+{text}"

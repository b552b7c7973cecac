"""What a figure looks like in a page: its value, and whether it looks measured."""

import re

_NUMBER = r"\d[\d,]*(?:\.\d+)?"
_UNITS = (
    r"%|ns|µs|ms|s|B|KiB|MiB|GiB|[kMGT]?(?:B|FLOP)/s|req/s|tok/s|bytecodes|collections|bytes|points"
    r"|seconds|minutes|hours"
)
_RANGE = rf"{_NUMBER}(?:(?:/| to [-+−]?){_NUMBER})*"
VALUE = (
    rf"(?<![\w#/×])(?<!\d[.,])(?:(?<!-)-|[+−×])?{_RANGE}(?: (?:{_UNITS}))?"
    r"(?!\w|[.,]\d|/\d)"
)
"""A number with its sign and unit, a range of them, "920/84/1"; no version, no issue."""

_LEVEL = re.compile(r"95 %(?=:|\)| interval)")
_GROUPED = re.compile(r"\d,\d{3}")
_UNIT = re.compile(rf"\d (?:{_UNITS})$")


def measured_spans(text: str) -> list[tuple[int, int]]:
    """Where ``text`` has values that look measured, in its order.

    They have a sign, a unit, thousands or three counts; in a table any fraction will do.
    """
    spans = []
    for found in re.finditer(VALUE, text):
        line = text.rfind("\n", 0, found.start()) + 1
        in_table = text.startswith("|", line)
        if _looks_measured(found[0], in_table) and not _LEVEL.match(text, found.start()):
            spans.append(found.span())
    return spans


def _looks_measured(value: str, in_table: bool) -> bool:
    return bool(
        value[0] in "+−×"
        or value.count("/") == 2
        or _UNIT.search(value)
        or _GROUPED.search(value)
        or (in_table and "." in value)
    )

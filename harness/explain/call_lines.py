"""On which lines of a function another one is called, by the names in its source."""

import ast
from functools import cache
from pathlib import Path
from typing import NamedTuple

from harness.explain.hand_on import called
from harness.explain.result import FunctionPlace
from harness.explain.sources import Sources

_OF_CLASS = frozenset(("__init__", "__new__"))


class _Names(NamedTuple):
    """Lines by the name that is called there, and by the attribute that is read."""

    calls: dict[str, list[int]]
    attributes: dict[str, list[int]]


def call_lines(sources: Sources, function: FunctionPlace, callee: FunctionPlace) -> list[int]:
    """Lines on which ``function`` calls ``callee``, the first first; none where no name tells.

    A class is called for its ``__init__``, a property read.
    """
    path = sources.path(function.file)
    if path is None:
        return []
    *outer, name = callee.name.split(".")
    wanted = outer[-1] if outer and name in _OF_CLASS else name
    names = _names(path, function.line, function.name.rpartition(".")[2])
    return names.calls.get(wanted) or names.attributes.get(wanted) or []


@cache
def _tree(path: Path) -> ast.Module:
    try:
        return ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return ast.Module([], [])


@cache
def _names(path: Path, line: int, name: str) -> _Names:
    found = _Names({}, {})
    for node in ast.walk(_tree(path)):
        if (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and node.name == name
            and line == min([node.lineno, *(each.lineno for each in node.decorator_list)])
        ):
            _collect(node, found)
    for lines in (*found.calls.values(), *found.attributes.values()):
        lines.sort()
    return found


def _collect(function: ast.AST, found: _Names) -> None:
    for node in ast.walk(function):
        match node:
            # A call's bytecodes stand where the name ends, however far its arguments go.
            case ast.Call(func=ast.expr(end_lineno=int(line))) if called(node):
                found.calls.setdefault(called(node), []).append(line)
            case ast.Attribute(attr=attribute, end_lineno=int(line)):
                found.attributes.setdefault(attribute, []).append(line)

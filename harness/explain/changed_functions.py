"""Functions whose code differs between two trees of a package, whatever lines they stand on."""

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from difflib import SequenceMatcher
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import msgspec

from harness.trial.output_hashes import QualifiedName

MODULE = "<module>"
"""In the place of a function's name: what a module runs when it is imported."""


class Statement(NamedTuple):
    """Lines of one, of a compound one those before its body."""

    first: int
    last: int


class ChangedFunction(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """As HEAD has it: its file below the tree's folder, its qualified name, its first line.

    ``way``: flags that have a cell run it, where they are known. ``statements``: those that differ
    and that serving may run; not what ends by raising.
    """

    file: str
    name: str
    line: int
    way: str = ""
    statements: tuple[Statement, ...] = ()


def changed_functions(base: Path, head: Path, package: str) -> list[ChangedFunction]:
    """Those of HEAD that BASE has not, or has otherwise; comments, docstrings, types are no code.

    A file that is no Python of this interpreter's is left out.
    """
    found = []
    for path in sorted((head / package).rglob("*.py")):
        file = path.relative_to(head).as_posix()
        before, after = _source(base / file), _source(path)
        if before == after:
            continue
        known = _by_name(before)
        found += [
            ChangedFunction(
                file=file,
                name=each.name,
                line=each.line,
                statements=differing_statements(each.node, known.get(name)),
            )
            for name, each in _by_name(after).items()
            if name not in known or known[name].code != each.code
        ]
    return found


def differing_functions(base: Path, head: Path, files: Iterable[str]) -> frozenset[QualifiedName]:
    """As `changed_functions`, of these files below the folders, with those that BASE alone has."""
    found: set[QualifiedName] = set()
    for file in files:
        before, after = _source(base / file), _source(head / file)
        if before != after:
            old, new = (
                {name: each.code for name, each in _by_name(source).items()}
                for source in (before, after)
            )
            names = old.keys() | new.keys()
            found |= {
                (file, name) for name, nth in names if old.get((name, nth)) != new.get((name, nth))
            }
    return frozenset(found)


def _source(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


class _Function(NamedTuple):
    """``node``: without what stands in it as a function of its own."""

    name: str
    line: int
    code: str
    node: ast.AST


def _functions(source: bytes) -> Iterator[_Function]:
    """Each with its first line, a module's own code first."""
    try:
        module = ast.parse(source)
    except (SyntaxError, ValueError):
        return
    module = _WithoutWords().visit(module)
    inner: list[_Function] = []
    own = _Outline("", inner).visit(module)
    yield _Function(MODULE, 1, ast.dump(own), own)
    yield from inner


def _by_name(source: bytes) -> dict[tuple[str, int], _Function]:
    """By name and how many of that name come before: a property has a getter and a setter."""
    found: dict[tuple[str, int], _Function] = {}
    times = Counter[str]()
    for each in _functions(source):
        found[each.name, times[each.name]] = each
        times[each.name] += 1
    return found


def differing_statements(after: ast.AST, before: _Function | None) -> tuple[Statement, ...]:
    """Of a function those that it had not or had elsewhere, or all; none of a module."""
    if isinstance(after, ast.Module):
        return ()
    new = list(_statements(after))
    old = list(_statements(before.node)) if before else []
    matcher = SequenceMatcher(None, [each.code for each in old], [each.code for each in new], False)
    return tuple(
        new[place].at
        for tag, _, _, first, last in matcher.get_opcodes()
        if tag in ("insert", "replace")
        for place in range(first, last)
        if new[place].may_run
    )


class _Code(NamedTuple):
    at: Statement
    code: str
    may_run: bool


_NOTHING = (ast.Pass, ast.Break, ast.Continue, ast.Global, ast.Nonlocal, ast.Try)
"""Statements of which no line need ever run, unless one is all there is to a loop."""
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def _statements(node: ast.AST, is_served: bool = True) -> Iterator[_Code]:
    """Those of its body, at any depth, from the top down."""
    for suite in _suites(node):
        served = is_served and not isinstance(suite[-1], ast.Raise)
        for each in suite:
            inner = _suites(each)
            last = (inner[0][0].lineno - 1) if inner else each.end_lineno or each.lineno
            at = Statement(each.lineno, max(each.lineno, last))
            is_turn = isinstance(node, _LOOPS) and node.body == [each]
            is_code = is_turn or not (isinstance(each, _NOTHING) or _is_declared(each))
            yield _Code(at, _header(each), served and is_code)
            yield from _statements(each, served)


def _suites(node: ast.AST) -> list[list[ast.stmt]]:
    """The bodies of a compound statement, in their order; none of any other."""
    suites = [getattr(node, name, []) for name in ("body", "orelse", "finalbody")]
    if isinstance(node, ast.Lambda | ast.IfExp):
        return []
    for each in (*getattr(node, "handlers", []), *getattr(node, "cases", [])):
        suites.append(each.body)
    return [suite for suite in suites if suite]


def _header(node: ast.stmt) -> str:
    """A statement without its bodies."""
    if not _suites(node):
        return ast.dump(node)
    bodies = ("body", "orelse", "finalbody", "handlers", "cases")
    parts = ((name, value) for name, value in ast.iter_fields(node) if name not in bodies)
    return f"{type(node).__name__} {[_dumped(value) for _, value in parts]}"


def _dumped(value: object) -> object:
    if isinstance(value, list):
        return [_dumped(each) for each in value]
    return ast.dump(value) if isinstance(value, ast.AST) else value


def _is_declared(node: ast.stmt) -> bool:
    """A type without a value, or a word that stands alone."""
    return (isinstance(node, ast.AnnAssign) and node.value is None) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )


class _WithoutWords(ast.NodeTransformer):
    """Leaves out what nothing executes: docstrings and types."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Of a body, the first sentence."""
        super().generic_visit(node)
        match node:
            case ast.Module() | ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                node.body = [
                    ast.copy_location(ast.Pass(), each) if _is_text(each) else each
                    for each in node.body
                ]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        if isinstance(node, ast.arg):
            node.annotation = None
        return node


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", None), str)


class _Outline(ast.NodeTransformer):
    """Takes functions out of what they stand in, into a list."""

    def __init__(self, prefix: str, found: list[_Function]) -> None:
        self._prefix = prefix
        self._found = found

    def visit_Module(self, node: ast.Module) -> ast.AST:
        """In which order it imports and defines is no code."""
        node.body = _in_any_order([self.visit(each) for each in node.body])
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """Its methods are named by it; the rest of it runs with the module."""
        inside = _Outline(f"{self._prefix}{node.name}.", self._found)
        node.body = _in_any_order([inside.visit(each) for each in node.body])
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Its own code, without that of functions in it."""
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        """As any other."""
        return self._function(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        name = f"{self._prefix}{node.name}"
        line = min([node.lineno, *(each.lineno for each in node.decorator_list)])
        inside = _Outline(f"{name}.<locals>.", self._found)
        place = len(self._found)
        node.body = [inside.visit(each) for each in node.body]
        self._found.insert(place, _Function(name, line, ast.dump(_with_numbers(node)), node))
        return ast.copy_location(ast.Expr(ast.Constant(f"def {node.name}")), node)


def _in_any_order(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """With imports that follow one another sorted, and so functions and classes."""
    runs = groupby(body, lambda each: _kind_in_module(each) or id(each))
    return [each for _, run in runs for each in sorted(run, key=ast.dump)]


def _kind_in_module(node: ast.stmt) -> str:
    match node:
        case ast.Import() | ast.ImportFrom():
            return "import"
        case ast.ClassDef() | ast.Expr(ast.Constant()):
            return "definition"
        case _:
            return ""


def _with_numbers(function: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
    """A copy whose local variables have numbers, so that to rename one is no change.

    Parameters keep their names, by which others pass them.
    """
    function = deepcopy(function)
    nodes = list(ast.walk(function))
    stored = [each.id for each in nodes if isinstance(each, ast.Name) and _is_stored(each)]
    kept = {each.arg for each in nodes if isinstance(each, ast.arg)}
    for each in nodes:
        if isinstance(each, ast.Global | ast.Nonlocal):
            kept.update(each.names)
    numbers = {name: f"local {n}" for n, name in enumerate(dict.fromkeys(stored))}
    for each in nodes:
        if isinstance(each, ast.Name) and each.id not in kept:
            each.id = numbers.get(each.id, each.id)
    return function


def _is_stored(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)

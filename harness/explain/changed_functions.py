"""Functions whose code differs between two trees of a package, whatever lines they stand on."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

MODULE = "<module>"
"""In the place of a function's name: what a module runs when it is imported."""


QualifiedName = tuple[str, str]
"""A file below the folder it was imported from, and a qualified name."""


class ChangedFunction(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """As HEAD has it: its file below the tree's folder, its qualified name, its first line.

    ``way``: flags that have a cell run it, where they are known.
    """

    file: str
    name: str
    line: int
    way: str = ""


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
        known = {name: code for name, _, code in _functions(before)}
        found += [
            ChangedFunction(file=file, name=name, line=line)
            for name, line, code in _functions(after)
            if known.get(name) != code
        ]
    return found


def differing_functions(base: Path, head: Path, files: Iterable[str]) -> frozenset[QualifiedName]:
    """As `changed_functions`, of these files below the folders, with those that BASE alone has."""
    found: set[QualifiedName] = set()
    for file in files:
        before, after = _source(base / file), _source(head / file)
        if before != after:
            old, new = (
                {name: code for name, _, code in _functions(source)} for source in (before, after)
            )
            names = old.keys() | new.keys()
            found |= {(file, name) for name in names if old.get(name) != new.get(name)}
    return frozenset(found)


def _source(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def _functions(source: bytes) -> Iterator[tuple[str, int, str]]:
    """Qualified name, first line and code of each, a module's own code first."""
    try:
        module = ast.parse(source)
    except (SyntaxError, ValueError):
        return
    module = _WithoutWords().visit(module)
    inner: list[tuple[str, int, str]] = []
    own = _Outline("", inner).visit(module)
    yield MODULE, 1, ast.dump(own)
    yield from inner


class _WithoutWords(ast.NodeTransformer):
    """Leaves out what nothing executes: docstrings and types."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Of a body, the first sentence."""
        super().generic_visit(node)
        match node:
            case ast.Module() | ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                node.body = [ast.Pass() if _is_text(each) else each for each in node.body]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        if isinstance(node, ast.arg):
            node.annotation = None
        return node


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", None), str)


class _Outline(ast.NodeTransformer):
    """Takes functions out of what they stand in, into a list."""

    def __init__(self, prefix: str, found: list[tuple[str, int, str]]) -> None:
        self._prefix = prefix
        self._found = found

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """Its methods are named by it; the rest of it runs with the module."""
        inside = _Outline(f"{self._prefix}{node.name}.", self._found)
        node.body = [inside.visit(each) for each in node.body]
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
        self._found.insert(place, (name, line, ast.dump(node)))
        return ast.Expr(ast.Constant(f"def {node.name}"))

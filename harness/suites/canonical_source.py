"""What a module does, in one form for all its spellings, the same under any supported Python.

Left out are docstrings, comments, layout, annotations that nothing reads, and where a name is
imported from: a module goes by what it holds. Class bodies keep their annotations, which msgspec
and `NamedTuple` read.
"""

import ast
from collections.abc import Iterator, Sequence
from typing import Any, Protocol


class HashOf(Protocol):
    """Finds the hash of a module of the project."""

    def __call__(self, module: str, member: str = "") -> str | None:
        """A module's, or that of the module in it; None where there is no such module."""
        ...


_FOR_ANNOTATIONS = ("__future__", "collections.abc", "numpy.typing", "typing")
_NOT_RUN = {"annotation", "ctx", "kind", "returns", "simple", "type_comment", "type_params"}


def canonical_source(source: ast.Module, hash_of: HashOf) -> str:
    """One ASCII line that is equal for modules that do the same, "" for one that does nothing."""
    block = _Writer(source, hash_of).block(source.body)
    return ascii(block) if block else ""


def imports(source: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """All that is imported when the code runs, in functions too."""
    for node in _inner(source):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif not _is_for_type_checkers(node):
            yield from imports(node)


def _inner(node: ast.AST) -> Iterator[ast.AST]:
    """Its statements, and its handlers and cases, which have some; an expression has none."""
    for _, value in ast.iter_fields(node):
        if isinstance(value, list):
            for each in value:
                if isinstance(each, ast.stmt | ast.excepthandler | ast.match_case):
                    yield each


def _is_for_type_checkers(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Name)
        and node.test.id == "TYPE_CHECKING"
        and not node.orelse
    )


def _dotted(node: ast.AST) -> str:
    """``a.b.c`` as it is written, "" where the like of a call is in it."""
    if isinstance(node, ast.Attribute):
        return f"{before}.{node.attr}" if (before := _dotted(node.value)) else ""
    return node.id if isinstance(node, ast.Name) else ""


class _Writer:
    """Writes syntax as nested tuples of strings."""

    def __init__(self, source: ast.Module, hash_of: HashOf) -> None:
        self._hash_of = hash_of
        self._modules: dict[str, str] = {}  # by what stands for the module in expressions
        for node in imports(source):
            for alias in node.names:
                if found := self._module(node, alias):
                    self._modules[alias.asname or alias.name] = found

    def _module(self, node: ast.Import | ast.ImportFrom, alias: ast.alias) -> str | None:
        if isinstance(node, ast.Import):
            return self._hash_of(alias.name)
        return self._hash_of(node.module or "", alias.name)

    def block(self, statements: Sequence[ast.stmt], in_class: bool = False) -> tuple[Any, ...]:
        """The statements that do something; imports that follow each other have no order."""
        written: list[Any] = []
        imported: set[tuple[str, ...]] = set()
        for node in statements:
            if isinstance(node, ast.Import | ast.ImportFrom):
                imported.update(self._imported(node))
            elif not (self._does_nothing(node, in_class) or _is_for_type_checkers(node)):
                if imported:
                    written.append(("imports", *sorted(imported)))
                    imported = set()
                written.append(self._statement(node, in_class))
        return (*written, *([("imports", *sorted(imported))] if imported else []))

    def _does_nothing(self, node: ast.stmt, in_class: bool) -> bool:
        if isinstance(node, ast.AnnAssign):
            return not in_class and node.value is None
        return isinstance(node, ast.Pass) or (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        )

    def _statement(self, node: ast.stmt, in_class: bool) -> Any:
        if not isinstance(node, ast.AnnAssign):
            return self._node(node)
        if not in_class and node.value is not None:
            return self._node(ast.Assign([node.target], node.value))
        return ("field", *map(self._form, (node.target, node.annotation, node.value)))

    def _imported(self, node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, ...]]:
        path = node.module or "" if isinstance(node, ast.ImportFrom) else ""
        if path in _FOR_ANNOTATIONS:
            return
        place = path and (self._hash_of(path) or path)
        for alias in node.names:
            if module := self._module(node, alias):
                yield "module", module
            else:
                yield "from", place, alias.name, alias.asname or ""

    def _form(self, value: Any) -> Any:
        if isinstance(value, list):
            return tuple(map(self._form, value))
        if isinstance(value, ast.Constant):
            return type(value.value).__name__, ascii(value.value)
        if isinstance(value, ast.JoinedStr):
            return "JoinedStr", *self._pieces(value)
        if isinstance(value, ast.Name | ast.Attribute) and (
            module := self._modules.get(_dotted(value))
        ):
            return "module", module
        return self._node(value) if isinstance(value, ast.AST) else value

    def _pieces(self, text: ast.JoinedStr) -> Iterator[Any]:
        """Constant text in one piece, and none of length 0: there the versions differ."""
        constant = ""
        for piece in text.values:
            if isinstance(piece, ast.Constant):
                constant += str(piece.value)
                continue
            if constant:
                yield constant
            constant = ""
            yield self._form(piece)
        if constant:
            yield constant

    def _node(self, node: ast.AST) -> tuple[Any, ...]:
        """Its fields but those that are empty: later versions have more of them."""
        fields: list[Any] = []
        for name, value in ast.iter_fields(node):
            if name in _NOT_RUN or value is None or value == []:
                continue
            is_block = isinstance(value, list) and isinstance(value[0], ast.stmt)
            form = self.block(value, isinstance(node, ast.ClassDef)) if is_block else None
            fields.append((name, self._form(value) if form is None else form))
        return type(node).__name__, *fields

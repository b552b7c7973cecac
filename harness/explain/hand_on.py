"""How code goes on with a value: where its file reads it, and what is done with it there."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

_CHANGE = "change in place"
_CHANGES = {"clear": ".clear()"} | dict.fromkeys(
    ("append", "extend", "insert", "pop", "remove", "reverse", "sort", "add", "update"), _CHANGE
)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Syntax:
    """A file's syntax tree that knows its parents. Raises SyntaxError, ValueError and others as
    `ast.parse`.
    """

    def __init__(self, source: str) -> None:
        self.nodes: list[ast.AST] = []
        self._parents: dict[ast.AST, ast.AST] = {}
        for node in ast.walk(ast.parse(source)):
            self.nodes.append(node)
            for child in ast.iter_child_nodes(node):
                self._parents[child] = node
        self._uses: dict[ast.AST, dict[str, list[ast.Name]]] = {}

    def parent(self, node: ast.AST) -> ast.AST | None:
        """The node that it is a part of; None of a module."""
        return self._parents.get(node)

    def scope(self, node: ast.AST) -> ast.AST:
        """The function that it is in, or the module."""
        at = self._parents[node]
        while not isinstance(at, (*_FUNCTIONS, ast.Module)):
            at = self._parents[at]
        return at

    def reads(self, node: ast.Name | ast.Attribute) -> bool:
        """Whether a name is read, changed or deleted here, and not only bound."""
        return not isinstance(node.ctx, ast.Store) or isinstance(self.parent(node), ast.AugAssign)

    def uses(self, scope: ast.AST, name: str) -> list[ast.Name]:
        """Where a variable of a function is read, changed or deleted; what only binds it is not."""
        if scope not in self._uses:
            self._uses[scope] = defaultdict(list)
            for each in ast.walk(scope):
                if isinstance(each, ast.Name) and self.reads(each):
                    self._uses[scope][each.id].append(each)
        return self._uses[scope].get(name, [])


@dataclass(slots=True)
class HandedOn:
    """The names by which a value goes elsewhere: attributes that hold it, functions that return
    it, parameters (function, and place or name) that take it.
    """

    attributes: set[str] = field(default_factory=set)
    functions: set[str] = field(default_factory=set)
    parameters: set[tuple[str, int | str]] = field(default_factory=set)

    @property
    def words(self) -> set[str]:
        """Code without one of them has nothing to do with the value."""
        return self.attributes | self.functions | {function for function, _ in self.parameters}

    def without(self, other: "HandedOn") -> "HandedOn":
        """Those that are not the other's."""
        return HandedOn(
            self.attributes - other.attributes,
            self.functions - other.functions,
            self.parameters - other.parameters,
        )

    def add(self, other: "HandedOn") -> None:
        """Take another's names in."""
        self.attributes |= other.attributes
        self.functions |= other.functions
        self.parameters |= other.parameters


class Flow:
    """Follows a value through its file.

    ``lines``: where it is read; ``hazards``: by what is done there that another type may not bear;
    ``names``: by which it goes elsewhere.
    """

    def __init__(self, syntax: Syntax) -> None:
        self._syntax = syntax
        self._seen: set[ast.AST] = set()
        self.lines: set[int] = set()
        self.hazards: dict[str, set[int]] = defaultdict(set)
        self.names = HandedOn()

    def read(self, node: ast.expr) -> None:
        """Follow a place where it is read."""
        self.lines.add(node.lineno)
        if hazard := _hazard(node, self._syntax):
            self.hazards[hazard].add(node.lineno)
        self.follow(node)

    def variable(self, scope: ast.AST, name: str) -> None:
        """Follow a variable of a function."""
        for each in self._syntax.uses(scope, name):
            if each not in self._seen:
                self._seen.add(each)
                self.read(each)

    def follow(self, node: ast.expr) -> None:
        """Follow the value of an expression."""
        match parent := self._syntax.parent(node):
            case ast.Assign(targets=targets):
                self._bind(*targets)
            case ast.AnnAssign(target=target) | ast.NamedExpr(target=target):
                self._bind(target)
            case ast.For(iter=it, target=target) | ast.comprehension(iter=it, target=target):
                self._bind(*([target] if it is node else []))
            case ast.Return() | ast.Yield():
                scope = self._syntax.scope(parent)
                self.names.functions |= {scope.name} if isinstance(scope, _FUNCTIONS) else set()
            case ast.keyword(arg=str(name)):
                self._pass(self._syntax.parent(parent), name)
            case ast.Call(args=args) if node in args:
                self._pass(parent, args.index(node))
            case ast.Subscript(value=value, ctx=ast.Load()) if value is node:
                self.follow(parent)
            case ast.IfExp() | ast.BoolOp() | ast.Await() | ast.Starred():
                self.follow(parent)
            case _:
                pass

    def _bind(self, *targets: ast.expr) -> None:
        for target in targets:
            if isinstance(target, ast.Name):
                self.variable(self._syntax.scope(target), target.id)
            elif isinstance(target, ast.Attribute):
                self.names.attributes.add(target.attr)

    def _pass(self, call: ast.AST | None, to: int | str) -> None:
        callee = called(call) if isinstance(call, ast.Call) else ""
        if callee:
            self.names.parameters.add((callee, to))
        if callee[:1].isupper() and isinstance(to, str):
            self.names.attributes.add(to)  # of a record


def called(call: ast.Call) -> str:
    """The last name of what is called, "" where it has none."""
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def taken(node: ast.AST, parameters: set[tuple[str, int | str]]) -> Iterator[tuple[ast.AST, str]]:
    """Of a definition the function and its parameters' names that are among those asked for; of a
    class those of its ``__init__``.
    """
    if isinstance(node, ast.ClassDef):
        inits = [each for each in node.body if isinstance(each, _FUNCTIONS)]
        found = next((each for each in inits if each.name == "__init__"), None)
    else:
        found = node if isinstance(node, _FUNCTIONS) else None
    if found is None:
        return
    name = getattr(node, "name", "")
    for to in (to for function, to in parameters if function == name):
        names = _names(found)
        if isinstance(to, str) and to in names:
            yield found, to
        elif isinstance(to, int) and to < len(names):
            yield found, names[to]


def _names(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """Of its parameters, in their order, but for ``self``."""
    asked = function.args
    names = [each.arg for each in (*asked.posonlyargs, *asked.args, *asked.kwonlyargs)]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def _hazard(node: ast.expr, syntax: Syntax) -> str:
    """What is done with a value that an array, say, does not bear or answers otherwise; or ""."""
    parent = syntax.parent(node)
    hazard = ""
    match parent:
        case ast.Call(func=ast.Name(id="len" as name), args=[first]) if first is node:
            hazard = name
        case ast.Call(func=ast.Name(id="isinstance" | "type"), args=[first, *_]) if first is node:
            hazard = "type"
        case ast.Attribute(attr=name) if isinstance(syntax.parent(parent), ast.Call):
            hazard = _CHANGES.get(name, "")
        case ast.Subscript(value=value, ctx=ast.Del()) if value is node:
            hazard = "del x[…]"
        case ast.Subscript(value=value, ctx=ast.Store()) if value is node:
            hazard = _CHANGE
        case ast.Subscript(value=value, slice=index) if value is node:
            hazard = "" if isinstance(index, ast.Slice) else "element"
        case ast.AugAssign(target=target) if target is node:
            hazard = _CHANGE
        case _ if _is_tested(node, parent):
            hazard = "truth value"
    return hazard


def _is_tested(node: ast.expr, parent: ast.AST | None) -> bool:
    match parent:
        case (
            ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) | ast.Assert(test=test)
        ):
            return test is node
        case ast.comprehension(ifs=ifs):
            return node in ifs
        case ast.Compare(ops=ops):
            return any(isinstance(each, ast.Eq | ast.NotEq) for each in ops)
    return isinstance(parent, ast.BoolOp) or (
        isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)
    )

"""SGLang's endless loops, one turn at a time: the release's own code, with a pause in it."""

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from typing import Any


class _Pausing(ast.NodeTransformer):
    """Puts a ``yield`` at the head of a function's own ``while True``."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """Of the function itself, and of none in it."""
        for each in node.body:
            for loop in ast.walk(each):
                if isinstance(loop, ast.While):
                    pause = ast.copy_location(ast.Expr(ast.Yield()), loop)
                    loop.body.insert(0, ast.fix_missing_locations(pause))
                    return node
        raise ValueError(f"SGLang's {node.name} has no loop; this release is not known here")


def pausing(method: Callable[..., Any]) -> Callable[..., Iterator[None]]:
    """The same function, a generator that pauses before each turn of its loop.

    Its names, decorators, file and lines are the release's own, so that counts and coverage name
    them. Raises ValueError for a function without a loop.
    """
    inner = inspect.unwrap(method)
    code = inner.__code__
    lines, first = inspect.getsourcelines(inner)
    tree = _Pausing().visit(ast.parse(textwrap.dedent("".join(lines))))
    for name in reversed(inner.__qualname__.split(".")[:-1]):
        outer = ast.parse(f"class {name}: pass")
        outer.body[0].body = tree.body  # type: ignore[attr-defined]
        tree = outer
    ast.increment_lineno(tree, first - 1)
    made: dict[str, Any] = {}
    exec(compile(tree, code.co_filename, "exec"), inner.__globals__, made)
    found: Any = made[inner.__qualname__.split(".")[0]]
    for name in inner.__qualname__.split(".")[1:]:
        found = getattr(found, name)
    return found  # type: ignore[no-any-return]

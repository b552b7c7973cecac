"""Which private names a test file takes from modules and objects that are not its own."""

import ast
from collections.abc import Iterator

OWN = {"self", "cls"}
PUBLIC = {"_replace", "_asdict", "_fields", "_make"}  # of named tuples
OTHERS = {"os._exit", "resource_tracker._resource_tracker"}  # Python's own, which has no other way


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in PUBLIC


def private_names(source: str) -> Iterator[str]:
    """As they stand there: imported, an attribute, or the name that is set by ``setattr``."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.ImportFrom(names=names):
                yield from (each.name for each in names if is_private(each.name))
            case ast.Attribute(value=ast.Name(id=name)) if name in OWN:
                pass
            case ast.Attribute(attr=name) if is_private(name):
                whole = ast.unparse(node)
                if not any(whole.startswith(other) for other in OTHERS):
                    yield whole
            case ast.Call(func=ast.Attribute(attr="setattr"), args=[*arguments]):
                for each in arguments[:2]:
                    if isinstance(each, ast.Constant) and isinstance(each.value, str):
                        yield from filter(is_private, each.value.split("."))

"""One form for all spellings of a module, the same under any supported Python."""

import ast
from hashlib import sha256

import pytest

from harness.suites.canonical_source import canonical_source

PLAIN = """
import json
from os import path
from harness.a import value, other
from harness.room import tool

LIMIT = 3

class Row:
    width: int
    height: int = 2

    def area(self, by):
        return self.width * self.height * by

def run(row, *, twice=False):
    size = row.area(LIMIT) + tool.measure(value, 1.5)
    if size > 4 and not twice:
        return path.join("a", "b" f"{size:>{LIMIT}}")
    return json.dumps([size, other])
"""

SPELT_OTHERWISE = '''
"""What it is for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final
from harness.b import other, value  # moved there
from harness.other_room import new_tool
from os import (
    path,
)
import json

if TYPE_CHECKING:
    from harness.c import Thing

LIMIT: Final[int] = 0x3
"""Of what."""

class Row:
    """A row."""

    width: int
    """In columns."""
    height: int = 2

    def area(self, by: int) -> "Thing":
        """Its area."""
        return (self.width * self.height) * by

def run(row: Row, *, twice: bool = False,) -> str:
    size: int
    # how large
    size = row.area(LIMIT) + new_tool.measure(value, 1.50)
    if (size > 4) and (not twice): return path.join(\'a\', f"b{size:>{LIMIT}}")
    return json.dumps(
        [size, other]
    )
'''

MODULES = {
    "harness.a": "1",
    "harness.b": "1",
    "harness.c": "3",
    "harness.room.tool": "2",
    "harness.other_room.new_tool": "2",
}

EVERY_CONSTRUCT = r"""
import os.path as p, sys
from math import *
@decorated(1, *args, key=None, **more)
class A(B, metaclass=C):
    x: int = 1; y: "list[int]"
    async def f(self, a, /, b=1, *c, d, e=2, **g):
        async with self as one, two: await g
        async for i in b: yield i
        return [j async for j in c if j]
def outer(*, k=None):
    global n; nonlocal_ = lambda q, r=0: q if r else -q
    def inner():
        nonlocal nonlocal_
        del n, k[1:2, ..., ::3]
        raise ValueError("x") from None
    try: pass
    except* (TypeError, OSError) as error: raise
    else: assert k, "why"
    finally: n += 1
    while (m := next(k)) is not None: break
    else: continue_ = {**m, 1: 2} | {3, 4} | {a: b for a, b in m}
    for x in 1, 2.5, 3j, True, None, b"\x00\xff", "\u20ac\U0001f600", 10**9, 1e400: continue
    match k:
        case [1, *rest] | {"a": -1, **kw}: return
        case A(x=0, y=str() as s) if s: return (yield from s)
        case _: yield
text = f"{x}" f"{x!r:>{w}.2f}" "tail" f"{x=}{{}}" f"" f"{x:}" f"{'in' + f'{1}'}" u"old"
print(not a, ~b, a @ b, a // b, a if b <= c != d else e, a not in b)
"""


def canonical(source: str) -> str:
    def hash_of(module: str, member: str = "") -> str | None:
        return MODULES.get(f"{module}.{member}" if member else module)

    return canonical_source(ast.parse(source), hash_of)


def test_spelling_docstrings_annotations_and_names_of_modules_do_not_count() -> None:
    assert canonical(SPELT_OTHERWISE) == canonical(PLAIN)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("LIMIT = 3", "LIMIT = 3.0"),
        ("LIMIT = 3", "LIMIT = True"),
        ("size > 4", "size >= 4"),
        ("1.5", "1.25"),
        ("twice=False", "twice=None"),
        ("width: int\n    height: int = 2", "height: int = 2\n    width: int"),
        ("width: int", "width: float"),
        ("import value, other", "import value"),
        ("import value, other", "import value, other as both"),
        ("from harness.a", "from harness.c"),
        ("from harness.room import tool", "from harness import a as tool"),
        ("from os import path", "from posix import path"),
        ("tool.measure", "tool.count"),
        ("not twice", "twice"),
        (":>{LIMIT}", ":<{LIMIT}"),
        ("[size, other]", "(size, other)"),
        ("return json", "json"),
        ("self, by", "self, *, by"),
    ],
)
def test_what_it_does_counts(old: str, new: str) -> None:
    assert old in PLAIN
    assert canonical(PLAIN.replace(old, new)) != canonical(PLAIN)


@pytest.mark.parametrize("nothing", ["", '"""A package."""\n', "# later\npass\n...\n"])
def test_a_module_that_does_nothing_is_empty(nothing: str) -> None:
    assert canonical(nothing) == ""


def test_every_python_writes_the_same() -> None:
    """The hash was taken under 3.11, and 3.12 and 3.13 gave it too; later ones must."""
    digest = sha256(canonical(EVERY_CONSTRUCT).encode()).hexdigest()
    assert digest[:12] == "5a8275dfa76d"

"""Files and values that nobody means well: what readers of somebody's files are tried with."""

import os
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

GIB = 2**30
ESCAPE = "\x1b]0;mine\x07\x1b[2J\x9b31m\u202e"
"""Would name a terminal's window, clear it, colour it and turn what follows."""

_ODD = st.sampled_from(
    [
        10**30,
        -(10**30),
        2**63,
        2**31,
        2**24,
        -1,
        0,
        1,
        7,
        1e308,
        -1e308,
        5e-324,
        True,
        None,
        "",
        "x",
        ESCAPE,
        "\0",
        [],
        {},
        [[]],
        [1, 2],
        {"kind": "fixed"},
    ]
)

JSON_VALUES = st.recursive(
    _ODD | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
VALUES = JSON_VALUES | st.sampled_from([float("nan"), float("inf"), -float("inf")])
"""With what JSON has no words for, and asv writes all the same; TOML has them too."""


def spoilt(samples: Sequence[Any], values: st.SearchStrategy[Any] = VALUES) -> Any:
    """One of ``samples``, which are JSON, with up to three of the values in it replaced."""

    @st.composite
    def draw_one(draw: Callable[[Any], Any]) -> Any:
        value = draw(st.sampled_from(samples))
        for _ in range(draw(st.integers(1, 3))):
            value = _with(value, _drawn_path(draw, value), draw(values))
        return value

    return draw_one()


def _drawn_path(draw: Callable[[Any], Any], value: Any) -> list[str | int]:
    """Level by level: of all places alike most would be samples in a list of many."""
    path: list[str | int] = []
    while isinstance(value, dict | list) and value and (not path or draw(st.integers(0, 3))):
        path.append(
            draw(st.sampled_from(list(value) if isinstance(value, dict) else range(len(value))))
        )
        value = value[path[-1]]
    return path


def _with(value: Any, path: Sequence[str | int], new: Any) -> Any:
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = _with(value[path[0]], path[1:], new)
    return copy


def _sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, 5 * GIB)


def _socket(path: Path) -> None:
    before = Path.cwd()
    os.chdir(path.parent)  # a socket's path has room for 107 bytes
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)
    os.chdir(before)


NO_FILES: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a device without end": lambda path: path.symlink_to("/dev/zero"),
    "a socket": _socket,
    "five gigabytes": _sparse,
    "a folder": Path.mkdir,
    "a link to itself": lambda path: path.symlink_to(path.name),
    "nothing": lambda path: None,
}
"""What can be in the place of a file: each makes one at a path."""

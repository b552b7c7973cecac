"""What the bytes of a pickle are for: the fields of its objects, names, and the rest."""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from engines.pickle_values import PickledValue, read_pickle

NAMES = "(names)"
"""Of modules, classes and attributes, and references to such names."""

PICKLE_REST = "(rest)"
"""Frames, the memo, the end of the pickle, and what is in no field."""

_Placed = tuple[PickledValue, str, Sequence[str] | None]
"""A value, its path and, where what it is made of are fields, the names of the places."""


def pickle_fields(data: bytes, buffer_bytes: Sequence[int] = ()) -> dict[str, int]:
    """Bytes by the path of the field whose value they are, such as "new.token_ids".

    What lies in a list, a dictionary or a tuple has the path of that. Fields are the attributes
    in an object's state, and those of a NamedTuple or a msgspec Struct that this process knows.
    `NAMES` and `PICKLE_REST` are the others. ``buffer_bytes``: of each buffer that travels out of
    band; the sum is that of these and of ``data``. Raises ValueError as `read_pickle`.
    """
    root, rest = read_pickle(data, buffer_bytes)
    found = Counter({PICKLE_REST: rest})
    to_do: list[_Placed] = [(root, "", None)]
    while to_do:
        value, path, names = to_do.pop()
        if value.name:
            path = NAMES
        found[path or PICKLE_REST] += value.num_bytes
        to_do += _below(value, path, names)
    return dict(found)


def _below(value: PickledValue, path: str, names: Sequence[str] | None) -> Iterator[_Placed]:
    if value.made_by is not None:
        yield from _of_object(value, value.made_by, path)
    elif names is None:
        yield from ((each, path, None) for each in value.items)
    elif value.kind == "EMPTY_DICT":
        for key, each in zip(value.items[::2], value.items[1::2], strict=True):
            yield key, NAMES if key.text else path, None
            yield each, _joined(path, key.text), None
    elif len(names) >= len(value.items):  # those with a default may be left out
        for each, name in zip(value.items, names, strict=False):
            yield each, _joined(path, name), None
    else:  # a state of two dictionaries, of which the other is that of slots
        yield from ((each, path, ()) for each in value.items)


def _of_object(value: PickledValue, made_by: PickledValue, path: str) -> Iterator[_Placed]:
    cls = _known(made_by.name)
    arguments, *others = value.items
    yield made_by, path, None
    yield arguments, path, _argument_names(made_by.name, cls)
    yield from ((state, path, _state_names(state, cls)) for state in value.states)
    yield from ((each, path, None) for each in others)


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path and name else path or name


def _known(name: tuple[str, str] | None) -> Any:
    """A class, if its module has been imported; nothing is imported or run for it."""
    found: Any = sys.modules.get(name[0]) if name else None
    for part in name[1].split(".") if name else ():
        found = vars(found).get(part) if hasattr(found, "__dict__") else None
    return found


def _argument_names(maker: tuple[str, str] | None, cls: Any) -> Sequence[str] | None:
    """What the arguments of a class are called that takes its fields by position."""
    if maker and maker[0].startswith("msgspec.") and maker[1] == "rebuild":
        return ()  # of a Struct that is made by keyword: the class, and its fields by name
    names: Sequence[str] | None = getattr(cls, "__struct_fields__", getattr(cls, "_fields", None))
    return names


def _state_names(state: PickledValue, cls: Any) -> Sequence[str]:
    """What the places of a state are called that is a list: a frozen dataclass's with slots."""
    is_listed = state.kind == "EMPTY_LIST" and is_dataclass(cls)
    return [each.name for each in fields(cls)] if is_listed else ()

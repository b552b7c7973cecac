"""The ballast's objects: which are of the census's own type, and what stands for the others.

A builder takes the object's fields, tracked objects first, and how many those are.
"""

from collections.abc import Callable
from functools import partial
from types import CellType, FunctionType
from typing import Any

from harness.collector.census import FanOut

Builder = Callable[[list[Any], int], object]

_PROPERTY_FIELDS = 4
_NO_FIELDS = ("",) * _PROPERTY_FIELDS  # a property without a doc takes its getter's
_UNTRACKED: dict[str, Any] = {}
_KEYS = [f"field_{number}" for number in range(4096)]


class _Struct(tuple[Any, ...]):
    """Stands for an object of many fields; refers to its class, as instances do."""

    __slots__ = ()


def _stub() -> None: ...


_new_code = _stub.__code__.replace


def build_function(namespace: dict[str, Any], fields: list[Any], references: int) -> FunctionType:
    """With code of its own; its first two atoms are its names, two fields can hold any object."""
    name, qualname = str(fields.pop(references)), str(fields.pop(references))
    function = FunctionType(_new_code(), namespace, name)
    function.__qualname__ = qualname
    function.__annotations__ = _UNTRACKED
    function.__doc__, function.__module__ = (*fields, None, None)[:2]
    return function


def build_other(fields: list[Any], references: int) -> object:
    """Of no type that is built here: by its number of fields a cell, a property or a struct."""
    if len(fields) <= 1:
        return CellType(*fields)
    if len(fields) <= _PROPERTY_FIELDS:
        return property(*fields, *_NO_FIELDS[len(fields) :])
    return _Struct(fields)


def _trackable(fields: list[Any], references: int) -> list[Any]:
    """Where nothing may be tracked, the collector stops tracking a tuple or dictionary.

    An empty dictionary is not tracked and may come to be, so its holder stays tracked.
    """
    return fields if references else [_UNTRACKED, *fields[1:]]


def _hashable(kind: Callable[[Any], object], fields: list[Any], references: int) -> object:
    """Few have tracked members, and few of those that are built here could be one."""
    return build_other(fields, references) if references else kind(fields)


BUILDERS: dict[str, Builder] = {
    "tuple": lambda fields, references: tuple(_trackable(fields, references)),
    "dict": lambda fields, references: dict(
        zip(_KEYS, _trackable(fields, references), strict=False)
    ),
    "list": lambda fields, references: fields[:],  # as long as it must be, not as it has grown
    "cell": lambda fields, references: CellType(*fields[:1]),
    "set": partial(_hashable, set),
    "frozenset": partial(_hashable, frozenset),
}
"""By the census's name of the type, but for functions, whose namespace changes."""


def fields_to_draw(kind: str, fan_out: FanOut) -> tuple[float, float]:
    """Mean references and atoms of an object, less those that its builder gives it anyway."""
    references, atoms = fan_out.references, fan_out.atoms
    if kind == "function":  # namespace and builtins; code and annotations
        return max(references - 2, 0), max(atoms - 2, 2)
    if kind not in BUILDERS and references + atoms > _PROPERTY_FIELDS:  # the class
        return max(references - 1, 0), atoms
    return references, atoms

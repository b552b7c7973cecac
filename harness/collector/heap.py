"""Ballast: a heap of a serving process's size and shape, in a process that has a small one.

A full pass costs what the collector has to follow: objects, references, and cache misses where
neighbours in its list are not neighbours in memory. 700,000 empty lists are passed in a tenth
of the time that a real heap takes, so the ballast copies a census.
"""

import gc
import time
from collections.abc import Callable, Sequence
from types import CellType, FunctionType, MethodType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Kind(NamedTuple):
    """One type of ballast: its share of the objects, and an object's mean number of references.

    ``references`` go to other tracked objects, ``atoms`` to strings.
    """

    share: float
    references: int
    atoms: int


COMPOSITION = {
    "function": Kind(0.164, 3, 5),
    "tuple": Kind(0.157, 2, 1),
    "dict": Kind(0.098, 9, 3),
    "list": Kind(0.046, 1, 6),
    "cell": Kind(0.320, 1, 0),
    "method": Kind(0.099, 1, 1),
    "instance": Kind(0.116, 3, 4),
}
"""Census of CPython 3.11.7 after ``import torch`` (2.13), 165,094 objects by `gc.get_objects`
and `gc.get_referents`, means rounded, to at least one reference. The 44.5 % of other types count
by their references: at most one as cells (descriptors, weak references, ...), two as methods,
more as instances."""

NEAR_SHARE, NEAR_OBJECTS = 0.5, 256
"""References to one of the 256 objects before; the same census: 49 % within 256 in the list."""

POPULAR_SHARE, POPULAR_OBJECTS = 0.2, 1000
"""References to a thousand objects that many refer to; 34 % in the census, of which functions'
references to their namespaces are one part here already."""

RUN_OBJECTS = 64
"""Objects that stay neighbours in the collector's list as in memory; then the list jumps. With 64
a pass costs 10 to 13 times one over empty lists; over vLLM's own heap it was 11."""

_SEED_OBJECTS = 64
_REACH = max(max(kind.references, kind.atoms) for kind in COMPOSITION.values())

_ballast: list[list[Any]] = []


def top_up(role: str, target_objects: int, seed: int) -> int:
    """Build ballast until this process's collector tracks so many; returns how many were built.

    What is there already counts, frozen or not; where that is enough, nothing is built. The
    ballast is in the oldest generation and lives until `release`; ``seed`` decides its shape.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        gc.collect()
        missing = target_objects - len(gc.get_objects()) - gc.get_freeze_count()
        if missing <= 0:
            return 0
        _ballast.append(_build(missing - 1, seed))  # the list that holds them is the last
        gc.collect()
        return missing
    finally:
        if enabled:
            gc.enable()


def release(role: str) -> None:
    """Let go of the ballast."""
    _ballast.clear()


def full_pass_seconds(role: str) -> float:
    """Wall time of one full collection of this process, in seconds."""
    began = time.perf_counter()
    gc.collect()
    return time.perf_counter() - began


def _build(count: int, seed: int) -> list[Any]:
    """So many objects, each of them tracked once, in runs whose order is shuffled."""
    rng = np.random.default_rng(seed)
    order = _kinds(count, rng)
    table = [(_BUILDERS[name], kind.references, kind.atoms) for name, kind in COMPOSITION.items()]
    strings = [str(number) for number in range(20_000)]
    built: list[Any] = [[] for _ in range(min(count, _SEED_OBJECTS))]
    while len(built) < count:
        known = len(built)
        pool = [built[i] for i in rng.permutation(known).tolist()]
        kinds = order[known : 2 * known]
        near, start = _references(known, len(kinds), rng)
        atom = rng.integers(0, len(strings) - _REACH, len(kinds))
        rows = zip(kinds.tolist(), near.tolist(), start.tolist(), atom.tolist(), strict=True)
        for kind, is_near, first, string in rows:
            build, references, atoms = table[kind]
            refers_to = (built if is_near else pool)[first : first + references]
            built.append(build(refers_to, strings[string : string + atoms]))
    # The first full pass puts the objects in the order of the list that holds them.
    runs = rng.permutation(np.arange(0, count, RUN_OBJECTS)).tolist()
    return [node for run in runs for node in built[run : run + RUN_OBJECTS]]


def _kinds(count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    shares = np.array([kind.share for kind in COMPOSITION.values()])
    bounds = np.rint(np.cumsum(shares) / shares.sum() * count).astype(np.int64)
    return rng.permutation(np.repeat(np.arange(len(shares)), np.diff(bounds, prepend=0)))


def _references(
    known: int, count: int, rng: np.random.Generator
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """For each of ``count`` objects: whether it refers to its neighbours, and where from on."""
    draw = rng.random(count)
    near = draw < NEAR_SHARE
    popular = draw >= 1 - POPULAR_SHARE
    back = rng.integers(_REACH, NEAR_OBJECTS + 1, count)
    among = np.where(popular, min(POPULAR_OBJECTS, known), known) - _REACH
    anywhere = rng.integers(0, among + 1)
    return near, np.where(near, np.maximum(known + np.arange(count) - back, 0), anywhere)


class _Instance:
    """A small object with attributes."""


def _stub() -> None: ...


_KEYS = [f"field_{number}" for number in range(32)]
_NAMESPACE: dict[str, Any] = {"__name__": __name__}


def _function(references: Sequence[Any], atoms: Sequence[str]) -> FunctionType:
    """Its other references (namespace, builtins, code, names) many share, as in any process."""
    function = FunctionType(_stub.__code__, _NAMESPACE, atoms[0])
    function.__doc__ = references[0]
    return function


def _instance(references: Sequence[Any], atoms: Sequence[str]) -> _Instance:
    instance = _Instance()
    for key, value in zip(_KEYS, (*references, *atoms), strict=False):
        setattr(instance, key, value)
    return instance


_BUILDERS: dict[str, Callable[[list[Any], list[str]], object]] = {
    "function": _function,
    "tuple": lambda references, atoms: (*references, *atoms),
    "dict": lambda references, atoms: dict(zip(_KEYS, references + atoms, strict=False)),
    "list": lambda references, atoms: references + atoms,
    "cell": lambda references, atoms: CellType(references[0]),
    "method": lambda references, atoms: MethodType(_stub, references[0]),
    "instance": _instance,
}

"""Count what the tracked heap of this process is made of."""

import gc
import platform
import statistics
import sys
import time
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.collector.census import Atoms, Census, FanOut, ObjectKind, Within

FOLDED_SHARE = 0.005
"""Types with a smaller share of the objects are one kind, ``OTHER``."""

OTHER = "other"

_FAN_OUT = (0, 1, 2, 3, 4, 5, 8, 16, 64, 256, sys.maxsize)
_POPULAR = (10, 100, 1000)
_LIST_DISTANCES = (1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144)
_BYTE_DISTANCES = (64, 256, 1024, 4096, 16_384, 65_536, 1 << 20, 1 << 24)


def full_pass_ns() -> float:
    """Median of nine full collections of this process, in nanoseconds."""
    gc.collect()  # two, after which the order of the list no longer changes
    gc.collect()
    nanoseconds = []
    for _ in range(9):
        began = time.perf_counter_ns()
        gc.collect()
        nanoseconds.append(time.perf_counter_ns() - began)
    return statistics.median(nanoseconds)


def take_census(source: str, vllm: str = "") -> Census:
    """Unfreeze this process's heap, time full passes over it, and count what is in it.

    ``source`` says in words what the process did before. The heap stays unfrozen.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        gc.unfreeze()
        pass_ns = full_pass_ns()
        objects = gc.get_objects()
        return _count(objects, pass_ns / len(objects), source, vllm)
    finally:
        if enabled:
            gc.enable()


class _Edges(NamedTuple):
    """References of ``[n]`` objects in the order of the list, those to tracked ones flat."""

    references: NDArray[np.int64]
    atoms: NDArray[np.int64]
    targets: NDArray[np.int64]
    atom_uses: Counter[int]
    atom_bytes: dict[int, int]
    atom_types: Counter[str]


def _count(objects: list[Any], ns_per_object: float, source: str, vllm: str) -> Census:
    address = np.fromiter(map(id, objects), np.int64, len(objects))
    edges = _edges(objects, address.tolist())
    sizes = np.fromiter(map(_size_bytes, objects), np.int64, len(objects))
    types = {made: number for number, made in enumerate(dict.fromkeys(map(type, objects)))}
    type_of = np.fromiter((types[type(made)] for made in objects), np.int64, len(objects))
    degree = np.bincount(edges.targets, minlength=len(objects))
    rank = np.empty(len(objects), np.int64)
    rank[np.argsort(-degree, kind="stable")] = np.arange(len(objects))
    step = (edges.targets - np.repeat(np.arange(len(objects)), edges.references))[
        rank[edges.targets] >= _POPULAR[-1]
    ]
    uses = np.sort(np.fromiter(edges.atom_uses.values(), np.int64))[::-1]
    return Census(
        source=source,
        python=platform.python_version(),
        vllm=vllm,
        objects=len(objects),
        full_pass_ns_per_object=round(ns_per_object, 1),
        kinds=_kinds([_type_name(made) for made in types], type_of, edges, sizes),
        popular=_within(rank[edges.targets] + 1, _POPULAR),
        distances=_within(np.abs(step), _LIST_DISTANCES),
        forward=_share(step > 0),
        referenced_once=_share(degree == 1),
        neighbours=_within(np.abs(np.diff(address)), _BYTE_DISTANCES),
        same_kind=_share(np.diff(type_of) == 0),
        atoms=Atoms(
            distinct=len(uses),
            popular=_within(np.repeat(np.arange(1, len(uses) + 1), uses), _POPULAR),
            size_bytes=round(sum(edges.atom_bytes.values()) / max(len(uses), 1), 1),
            type_share={
                name: round(count / edges.atom_uses.total(), 4)
                for name, count in edges.atom_types.most_common(8)
            },
        ),
    )


def _edges(objects: Sequence[Any], addresses: list[int]) -> _Edges:
    place_of = dict(zip(addresses, range(len(addresses)), strict=True))
    references, atoms, targets = array("q"), array("q"), array("q")
    uses, size_bytes, types = Counter[int](), dict[int, int](), Counter[str]()
    for made in objects:
        referents = gc.get_referents(made)
        places = [place for r in referents if (place := place_of.get(id(r))) is not None]
        targets.extend(places)
        references.append(len(places))
        atoms.append(len(referents) - len(places))
        for referent in referents:
            if id(referent) not in place_of:
                uses[id(referent)] += 1
                types[type(referent).__name__] += 1
                if id(referent) not in size_bytes:
                    size_bytes[id(referent)] = _size_bytes(referent)
    return _Edges(np.array(references), np.array(atoms), np.array(targets), uses, size_bytes, types)


def _kinds(
    names: list[str], type_of: NDArray[np.int64], edges: _Edges, sizes: NDArray[np.int64]
) -> tuple[ObjectKind, ...]:
    shares = np.bincount(type_of) / len(type_of)
    of_name: dict[str, list[int]] = {}
    for number, name in enumerate(names):
        of_name.setdefault(name if shares[number] >= FOLDED_SHARE else OTHER, []).append(number)
    bucket = np.searchsorted(_FAN_OUT, edges.references)
    kinds = []
    for name, numbers in of_name.items():
        of_kind = np.isin(type_of, numbers)
        buckets = [of_kind & (bucket == number) for number in np.unique(bucket[of_kind])]
        fan_out = tuple(FanOut(**_means(chosen, edges, sizes)) for chosen in buckets)
        kinds.append(ObjectKind(type=name, **_means(of_kind, edges, sizes), fan_out=fan_out))
    return tuple(sorted(kinds, key=lambda kind: -kind.share))


def _means(chosen: NDArray[np.bool_], edges: _Edges, sizes: NDArray[np.int64]) -> dict[str, float]:
    return {
        "share": round(float(chosen.mean()), 9),
        "references": round(float(edges.references[chosen].mean()), 3),
        "atoms": round(float(edges.atoms[chosen].mean()), 3),
        "size_bytes": round(float(sizes[chosen].mean()), 1),
    }


def _within(values: NDArray[np.int64], bounds: Iterable[int]) -> tuple[Within, ...]:
    return tuple(Within(bound=bound, share=_share(values <= bound)) for bound in bounds)


def _share(chosen: NDArray[np.bool_]) -> float:
    return round(float(chosen.mean()), 4) if len(chosen) else 0.0


def _size_bytes(made: Any) -> int:
    try:
        return sys.getsizeof(made)
    except Exception:  # a type's own __sizeof__ may do as it likes
        return object.__sizeof__(made)


def _type_name(made: type) -> str:
    module: Any = made.__module__
    if not isinstance(module, str):  # an extension type's may be a descriptor
        return made.__qualname__
    return made.__qualname__ if module == "builtins" else f"{module}.{made.__qualname__}"

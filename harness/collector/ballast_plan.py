"""Draw the ballast's shape from a census: what is built in which order, and what refers to what."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.collector.ballast_objects import fields_to_draw
from harness.collector.census import Census, Within

POPULAR = 1000
"""Objects and atoms that many refer to, the first of each."""

SEED_OBJECTS = 64
"""The first objects; they have no fields, since there is nothing to refer to yet."""

SAME_KIND_OBJECTS = 2
"""Objects alike that are built in a row. Tuned to the census's share of neighbours in the list
that are of one type."""

DISPLACED_FROM_BYTES = 1 << 20
"""How far apart in memory neighbours in the list must be in the census for objects to be moved in
the list here. Tuned to its distribution of distances: nearer ones are apart as they are in the
ballast, since objects of different sizes come from different pools."""

BYTES_PER_OBJECT = 340
"""Memory that the ballast takes, with its atoms: page faults while 690,000 were built."""

Ints = NDArray[np.int64]


class BallastPlan(NamedTuple):
    """What is built, in that order: ``[count]`` kinds, numbers of references and of atoms.

    ``fields`` is flat, each object's references and then its atoms: below ``count`` the number of
    an object, from there on that of an atom. ``atoms_made`` is ``[count]``: how many atoms there
    must be for that object and all before. ``order`` is ``[count]`` objects as they come in the
    collector's list, backwards.
    """

    kind: Ints
    references: Ints
    atoms: Ints
    fields: Ints
    atoms_made: Ints
    order: Ints


def plan_ballast(census: Census, count: int, seed: int) -> BallastPlan:
    """So many objects of the census's kinds, references and distances."""
    rng = np.random.default_rng(seed)
    rows = [
        (number, fan_out.share, fan_out.references, *fields_to_draw(kind.type, fan_out))
        for number, kind in enumerate(census.kinds)
        for fan_out in kind.fan_out
    ]
    kind, share, whole, mean_references, mean_atoms = map(np.array, zip(*rows, strict=True))
    row = _rows(share, count, rng)
    references, atoms = (
        np.floor(mean[row] + rng.random(count)).astype(np.int64)
        for mean in (mean_references, mean_atoms)
    )
    references[:SEED_OBJECTS] = atoms[:SEED_OBJECTS] = 0
    order = _order(census.neighbours, count, rng)
    popular = _popular_yet(census, float(share @ mean_references / (share @ whole)))
    source = np.repeat(np.arange(count), references)
    targets = _targets(census.distances, popular, source, order, rng)
    chosen = _atoms(census, int(atoms.sum()), rng)
    is_target = np.repeat(
        np.tile([True, False], count), np.column_stack((references, atoms)).ravel()
    )
    fields = np.empty(len(is_target), np.int64)
    fields[is_target], fields[~is_target] = targets, count + chosen
    atoms_made = np.maximum.accumulate(np.append(chosen, 0))[np.cumsum(atoms)] + 1
    return BallastPlan(kind[row], references, atoms, fields, atoms_made, order)


def _rows(share: NDArray[np.float64], count: int, rng: np.random.Generator) -> Ints:
    """``[count]``: the row of ``share`` that each object follows, alike ones in short runs."""
    bounds = np.rint(np.cumsum(share) / share.sum() * count).astype(np.int64)
    sorted_rows = np.repeat(np.arange(len(share)), np.diff(bounds, prepend=0))
    runs = rng.permutation(np.arange(0, count, SAME_KIND_OBJECTS))
    shuffled = (runs[:, None] + np.arange(SAME_KIND_OBJECTS)).ravel()
    return sorted_rows[shuffled[shuffled < count]]


def _order(neighbours: Sequence[Within], count: int, rng: np.random.Generator) -> Ints:
    """``[count]`` objects as they come in the list, most of them near where they were built."""
    # A jump in the list is the larger of two neighbours' displacements, hence the root.
    far = [
        Within(bound=within.bound // BYTES_PER_OBJECT, share=within.share**0.5)
        for within in neighbours
        if within.bound >= DISPLACED_FROM_BYTES
    ]
    by = _draw(far, count, count, rng)
    by[by <= far[0].bound] = 0
    return np.argsort(np.arange(count) + by * rng.choice([-1, 1], count), kind="stable")


def _popular_yet(census: Census, drawn_share: float) -> list[Within]:
    """The census's popular objects as a share of the references that are drawn.

    The others are made by builders. Namespaces apart, they are to the builtins and to a class.
    """
    references = sum(kind.share * kind.references for kind in census.kinds)
    namespaces = sum(kind.share for kind in census.kinds if kind.type == "function")
    made_share = 1 - drawn_share - namespaces / references
    return [
        Within(bound=within.bound, share=max(within.share - made_share, 0) / drawn_share)
        for within in census.popular
    ]


def _targets(
    distances: Sequence[Within],
    popular: Sequence[Within],
    source: Ints,
    order: Ints,
    rng: np.random.Generator,
) -> Ints:
    """For each reference of an object ``source``, the older object that it goes to."""
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    distance = _draw(distances, len(source), len(order), rng)
    target = np.floor(rng.random(len(source)) * source).astype(np.int64)
    # At that distance in the list one way or the other; where neither is built, anywhere.
    for direction in (1, -1):
        at = place[source] + direction * distance
        there = order[np.clip(at, 0, len(order) - 1)]
        is_built = (at >= 0) & (at < len(order)) & (there < source)
        target[is_built] = there[is_built]
    among = _draw(popular, len(source), 2 * POPULAR, rng) - 1
    is_popular = (among < POPULAR) & (among < source)
    target[is_popular] = among[is_popular]
    return target


def _atoms(census: Census, references: int, rng: np.random.Generator) -> Ints:
    """For each of so many references to atoms, which one: a popular, a new or a used one."""
    among = _draw(census.atoms.popular, references, 2 * POPULAR, rng) - 1
    is_rare = among >= POPULAR
    codes = sum(kind.share for kind in census.kinds if kind.type == "function")  # made anyway
    rare = sum(k.share * k.atoms for k in census.kinds) * (1 - census.atoms.popular[-1].share)
    new_share = (census.atoms.distinct / census.objects - codes) / (rare - codes)
    is_new = is_rare & (rng.random(references) < new_share)
    made = np.cumsum(is_new)
    used = np.floor(rng.random(references) * made).astype(np.int64)
    used[is_new] = made[is_new] - 1
    return np.where(is_rare, POPULAR + used, among)


def _draw(cumulative: Sequence[Within], count: int, largest: int, rng: np.random.Generator) -> Ints:
    """So many of 1 to ``largest``, log-uniform between the bounds of a cumulative distribution."""
    steps = [(within.share, within.bound + 1.0) for within in cumulative]
    share, bound = zip((0.0, 1.0), *steps, (1.0, max(largest, steps[-1][1])), strict=True)
    return np.exp(np.interp(rng.random(count), share, np.log(bound))).astype(np.int64)

"""Ballast: objects whose full pass costs what one over a serving process's heap costs.

A full pass costs what the collector has to follow: objects, references, and cache misses where
neighbours in its list are not neighbours in memory. 700,000 empty lists are passed in a tenth
of the time that a real heap takes, so the ballast follows the census of a served vLLM.
"""

import sys
from functools import partial
from itertools import islice
from typing import Any

from harness.collector.ballast_objects import BUILDERS, build_function, build_other
from harness.collector.ballast_plan import POPULAR, SEED_OBJECTS, plan_ballast
from harness.collector.census import Census

_BATCH_OBJECTS = 128  # whose atoms are made together, and whose functions share a namespace
_CONSTANTS = (None, True, False, "", 0, 1, int, str, object, *range(2, 257))
_NAMESPACE: dict[str, Any] = {}


def build_ballast(count: int, census: Census, seed: int) -> list[Any]:
    """So many objects, each of them tracked once, the collector's list of them backwards.

    To be called with the collector off: it would sort the objects while they are built.
    """
    plan = plan_ballast(census, count, seed)
    builders = [BUILDERS.get(kind.type, build_other) for kind in census.kinds]
    function = [kind.type for kind in census.kinds].index("function")
    text = f"%0{round(census.atoms.size_bytes) - sys.getsizeof('')}d"
    pool: list[Any] = [None] * count  # the objects, and from `count` on the atoms
    pool += [*_CONSTANTS, *map(str, range(POPULAR - len(_CONSTANTS)))]
    for number in range(min(count, SEED_OBJECTS)):
        pool[number] = []
    rows = zip(plan.kind.data, plan.references.data, plan.atoms.data, strict=True)
    rest = enumerate(islice(rows, SEED_OBJECTS, None), SEED_OBJECTS)
    fields = map(pool.__getitem__, plan.fields.data)
    for first in range(SEED_OBJECTS, count, _BATCH_OBJECTS):
        # Functions of a batch share a namespace, as those of a module do.
        before = map(pool.__getitem__, range(first - 1, -1, -1))
        namespace = next((made for made in before if type(made) is dict), _NAMESPACE)
        builders[function] = partial(build_function, namespace)
        # Atoms are made where they are first needed, so that they lie among the objects.
        last = min(first + _BATCH_OBJECTS, count) - 1
        pool += map(text.__mod__, range(len(pool) - count, plan.atoms_made[last]))
        for number, (kind, references, atoms) in islice(rest, _BATCH_OBJECTS):
            pool[number] = builders[kind]([*islice(fields, references + atoms)], references)
    # The first full pass puts the objects in the order of the list that holds them, from its end.
    return [*map(pool.__getitem__, plan.order.data)]

"""What a version takes per request and step, from its functions."""

from collections import Counter

from harness.explain.result import RequestStageCost, Side, VersionCost
from harness.explain.sampling import relative_half_width


def version_cost(side: Side) -> VersionCost:
    """What a version takes; its stages add up to it."""
    costs = side.costs
    bytecodes: Counter[str] = Counter()
    objects: Counter[str] = Counter()
    for each in costs.functions:
        bytecodes[each.stage] += each.bytecodes
        objects[each.stage] += each.allocations
    rows = costs.num_rows
    return VersionCost(
        label=side.label,
        num_steps=costs.num_steps,
        num_rows=rows,
        every=costs.every,
        half_width=relative_half_width(costs.samples, costs.every) if costs.every else None,
        bytecodes=bytecodes.total() / rows,
        objects=objects.total() / rows,
        stages={
            stage: RequestStageCost(
                bytecodes=bytecodes[stage] / rows, objects=objects[stage] / rows
            )
            for stage in bytecodes
        },
    )

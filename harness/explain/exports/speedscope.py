"""A profile for https://www.speedscope.app: flame graphs of bytecodes and of allocations."""

from typing import Any

import msgspec

from harness.explain.exports.stacks import COUNTS, Count, stacks
from harness.explain.result import FunctionPlace, FunctionsBody, Side

SPEEDSCOPE_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def speedscope_file(name: str, body: FunctionsBody) -> bytes:
    """Two profiles of each version, JSON: bytecodes per step and allocations per step.

    Weights are means over the steps that were traced. The versions share their frames, so one
    function has one colour in all profiles. The newer version's profiles come first.
    """
    frames: dict[FunctionPlace, int] = {}
    sides = [body.side] if body.against is None else [body.side, body.against]
    profiles = [_profile(side, count, frames) for side in sides for count in COUNTS]
    content = {
        "$schema": SPEEDSCOPE_SCHEMA,
        "name": name,
        "exporter": "gcbench explain",
        "activeProfileIndex": 0,
        "shared": {"frames": [each._asdict() for each in frames]},
        "profiles": profiles,
    }
    return msgspec.json.encode(content) + b"\n"


def _profile(side: Side, count: Count, frames: dict[FunctionPlace, int]) -> dict[str, Any]:
    """``frames``: the place of each so far; this side's functions are added to it."""
    costs = side.costs
    places = [frames.setdefault(FunctionPlace.of(each), len(frames)) for each in costs.functions]
    found = stacks(costs, count)
    return {
        "type": "sampled",
        "name": f"{side.label}: {count} per step",
        "unit": "none",
        "startValue": 0,
        "endValue": sum(each.own for each in found) / costs.num_steps,
        "samples": [[places[function] for function in each.functions] for each in found],
        "weights": [each.own / costs.num_steps for each in found],
    }

"""The workloads that a request names, with what stands in the place of what they say."""

from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from harness.verbs.request import WorkloadRequest
from workloads import catalog
from workloads.recipe.acceptance import parse_acceptance
from workloads.recipe.arrivals import parse_arrivals
from workloads.recipe.lengths import parse_lengths
from workloads.recipe.priorities import parse_priorities
from workloads.workload import Workload

_PARSERS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "num_requests": ("num_requests", int),
    "prompt_lens": ("prompt_lens", parse_lengths),
    "output_lens": ("output_lens", parse_lengths),
    "arrivals": ("arrivals", parse_arrivals),
    "tokens_per_step": ("acceptance", parse_acceptance),
    "priorities": ("priorities", parse_priorities),
    "min_tokens": ("min_tokens", int),
    "retain": ("retain", str),
    "stop": ("stop", tuple),
}
"""The field of a workload, and how it is read."""


def workloads_of(names: Iterable[object], request: WorkloadRequest) -> list[Workload]:
    """Each workload as it is asked for. Raises ValueError for anything that cannot be read."""
    changes: dict[str, Any] = {}
    for name, (field, parse) in _PARSERS.items():
        if (value := getattr(request, name)) not in (None, "", []):
            changes[field] = parse(value)
    if request.respect_eos:
        changes["ignore_eos"] = False
    trace, workloads = _trace_changes(request), []
    for each in names:
        workload, own = catalog.load_workload(str(each)), dict(changes)
        if trace:
            if workload.trace is None:
                raise ValueError(
                    f"workload {workload.name} is no trace: window, time_scale and skip_bad_rows "
                    "do nothing to it; leave them out"
                )
            own["trace"] = replace(workload.trace, **trace)
        if own:
            own["name"] = f"{workload.name} (changed)"
        workloads.append(replace(workload, **own))
    return workloads


def _trace_changes(request: WorkloadRequest) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    if window := request.window:
        try:
            start, duration = (float(part) for part in window.split(":"))
        except ValueError:
            raise ValueError(f"--axis window={window}: must be START:DURATION in seconds") from None
        changes |= {"start_seconds": start, "duration_seconds": duration}
    if request.time_scale is not None:
        changes["time_scale"] = request.time_scale
    if request.skip_bad_rows:
        changes["skip_bad_rows"] = True
    return changes
